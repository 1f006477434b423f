#pragma once

#include <cstdint>
#include <span>

#include "tessera/base/aligned_vector.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/host/internal/gradient.hpp"
#include "tessera/host/internal/product.hpp"
#include "tessera/host/times.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::host::internal {

// R, or its transpose, stored with its zeros, for one pass. The dense product of a library
// multiplies it in slices of rows that do not depend on the threads; without a library our kernels
// multiply it in blocks of 16. A pass is one step. T is float, Half or BFloat16; sums are float.
template <class T>
class HostDense {
 public:
  enum class Use { Product, TransposedProduct, Gradient };

  // With `own_kernel`, our kernels run even if a library was built in.
  HostDense(Use use, std::int64_t z, const host::HostCpu& cpu, Executor& executor, bool own_kernel);

  // Takes the size of R and, of our own kernels, memory. All values are 0.
  void set_pattern(const sparse::Csr<float>& weights);

  // Sets the values of R, whose size is that of set_pattern, for a product. Neither allocates nor
  // throws. O(values) on all threads; those of a full matrix are copied on one.
  void set_values(const sparse::Csr<float>& weights);

  // Computes out = R * in, or transpose(R) * in, and applies `after` to it. Rows and columns of R
  // beyond those of the operands are padding. Adds its times to `times`. Returns false if the
  // caller stopped the pass.
  [[nodiscard]] bool product(MatrixView<const T> in, MatrixView<T> out, const Epilogue<T>& after,
                             PassControl& control, HostTimes& times);

  // Computes q_grad * transpose(s) where `weights` has values, in their order, and writes it or
  // adds it to `gradients`.
  [[nodiscard]] bool gradient(const sparse::Csr<float>& weights, const DotOperands<T>& batch,
                              std::span<float> gradients, Accumulate accumulate,
                              PassControl& control, HostTimes& times);

  std::int64_t bytes() const {  // without scratch
    return list_bytes(dense_) + own_product_.bytes() + list_bytes(all_blocks_.row_begin) +
           list_bytes(all_blocks_.col);
  }

 private:
  sparse::Csr<float> all_blocks() const;
  // Calls body(number of the value, its position in dense_) for all values, on all threads.
  template <class Body>
  void for_each_value(const sparse::Csr<float>& weights, Body&& body) const;
  // Returns the operand as the library reads it, in contiguous rows of floats.
  MatrixView<const float> as_float(MatrixView<const T> from, AlignedVector<float>& copy);
  void multiply_slices(MatrixView<const float> in, MatrixView<float> out, const Epilogue<T>& after);
  // Computes the gradients of all of R into `to`, row by row.
  void multiply_gradient(const DotOperands<float>& batch, float* to);
  void library_product(MatrixView<const T> in, MatrixView<T> out, const Epilogue<T>& after,
                       HostTimes& times);

  Use use_;
  Executor* executor_;
  bool own_kernel_;
  std::int64_t rows_ = 0, cols_ = 0;      // of R or its transpose; whole blocks of our own kernel
  AlignedVector<float> dense_;            // [rows][cols], or block by block for our own kernel
  AlignedVector<float> in_, in_s_, out_;  // operands in float, if the caller's are not
  HostProduct<T> own_product_;
  HostGradient<T> own_gradient_;
  sparse::Csr<float> all_blocks_;  // without values, for own_gradient_
};

}  // namespace tessera::host::internal
