#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/base/aligned_vector.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/host/internal/gradient.hpp"
#include "tessera/host/internal/product.hpp"
#include "tessera/host/internal/transpose.hpp"
#include "tessera/host/times.hpp"

namespace tessera::host::internal {

// A pattern stored with its zeros, for one pass. The dense product of a library multiplies it in
// slices of rows that do not depend on the threads; without a library our kernels multiply it in
// blocks of 16. A pass is one step. T is float, Half or BFloat16; sums are float.
template <class T>
class HostDense {
 public:
  enum class Use { Product, Gradient };

  // With `own_kernel`, our kernels run even if a library was built in.
  HostDense(Use use, std::int64_t z, const host::HostCpu& cpu, Executor& executor, bool own_kernel);

  void set_pattern(const sparse::Csr<float>& matrix);

  // The same for the transpose of a matrix whose values set_values will be given.
  void set_pattern(const TransposedPattern& transpose);

  // Sets the values of the pattern, in its order, for Use::Product.
  void set_values(std::span<const float> values);

  // Computes out = R * in and applies `after` to it. Rows of R beyond `out` and columns beyond `in`
  // are padding. Adds its times to `times`. Returns false if the caller stopped the pass.
  [[nodiscard]] bool product(MatrixView<const T> in, MatrixView<T> out, const Epilogue<T>& after,
                             PassControl& control, HostTimes& times);

  // Computes q_grad * transpose(s) at the pattern, in the order of its values, and writes it or
  // adds it to `gradients`.
  [[nodiscard]] bool gradient(MatrixView<const T> q_grad, MatrixView<const T> s,
                              std::span<float> gradients, Accumulate accumulate,
                              PassControl& control, HostTimes& times);

  std::int64_t bytes() const {  // without scratch
    return list_bytes(at_) + list_bytes(dense_) + own_product_.bytes() +
           list_bytes(all_blocks_.row_begin) + list_bytes(all_blocks_.col);
  }

 private:
  sparse::Csr<float> all_blocks() const;
  std::int64_t place(std::int64_t row, std::int64_t col) const;
  void find_places(const sparse::Csr<float>& matrix);
  // Returns the operand as the library reads it, in contiguous rows of floats.
  MatrixView<const float> as_float(MatrixView<const T> from, AlignedVector<float>& copy);
  void multiply_slices(MatrixView<const float> in, MatrixView<float> out, const Epilogue<T>& after);
  void multiply_gradient(MatrixView<const float> q_grad, MatrixView<const float> s);
  void library_product(MatrixView<const T> in, MatrixView<T> out, const Epilogue<T>& after,
                       HostTimes& times);

  Use use_;
  Executor* executor_;
  bool own_kernel_;
  std::int64_t rows_ = 0, cols_ = 0;      // of R, whole blocks of 16
  std::vector<std::int64_t> at_;          // position of each value of the pattern in dense_
  AlignedVector<float> dense_;            // R or its gradient: [rows][cols], or block by block
  AlignedVector<float> in_, in_s_, out_;  // operands in float, if the caller's are not
  HostProduct<T> own_product_;
  HostGradient<T> own_gradient_;
  sparse::Csr<float> all_blocks_;  // without values, for own_gradient_
};

}  // namespace tessera::host::internal
