#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/base/aligned_vector.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/host/internal/gradient.hpp"
#include "tessera/host/internal/product.hpp"
#include "tessera/host/times.hpp"

namespace tessera::host::internal {

// A pattern held with its zeros, multiplied by a library's dense product in slices of rows that do
// not depend on the threads, or by our kernels on blocks of 16. T is float, Half or BFloat16; sums
// are float.
template <class T>
class HostDense {
 public:
  // `own_kernel`: even where a library was built in.
  HostDense(std::int64_t z, const host::HostCpu& cpu, Executor& executor, bool own_kernel);

  // For product() or for gradient().
  void set_pattern(const sparse::Csr<float>& matrix, bool for_gradient);
  void set_values(std::span<const float> values);
  // out = R * in. Rows of R beyond `out` and columns beyond `in` are padding.
  HostTimes product(MatrixView<const T> in, MatrixView<T> out);
  // q_grad * transpose(s) at the pattern, in the order of its values.
  HostTimes gradient(MatrixView<const T> q_grad, MatrixView<const T> s, std::span<float> gradients);

 private:
  sparse::Csr<float> all_blocks() const;
  std::int64_t place(std::int64_t row, std::int64_t col) const;
  void find_places(const sparse::Csr<float>& matrix);
  // Rows one after the other and in float, as the library wants them.
  MatrixView<const float> as_float(MatrixView<const T> from, AlignedVector<float>& copy);
  void multiply_slices(MatrixView<const float> in, MatrixView<float> out);

  Executor* executor_;
  bool own_kernel_;
  std::int64_t rows_ = 0, cols_ = 0;      // of R, whole blocks of 16
  std::vector<std::int64_t> at_;          // where each value of the pattern lies in dense_
  AlignedVector<float> dense_;            // R or its gradient: [rows][cols], or block by block
  AlignedVector<float> in_, in_s_, out_;  // operands in float, where the caller's are not
  HostProduct<T> own_product_;
  HostGradient<T> own_gradient_;
};

}  // namespace tessera::host::internal
