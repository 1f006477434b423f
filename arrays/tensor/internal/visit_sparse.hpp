#pragma once

#include <cstdint>
#include <string>

#include "tessera/arrays/tensor/internal/coo_access.hpp"
#include "tessera/arrays/tensor/sliced_csr.hpp"

namespace tessera::arrays::internal {

// The common interface of tensors and sliced matrices for BLAS and for conversions.

struct MatrixShape {
  std::int64_t rows = 0, cols = 0;
};

// Throw Error{InvalidArgument} "a tensor of 2 x 3 x 4 is no matrix: ..." or "... is no vector:
// ...".
[[noreturn]] void throw_not_a_matrix(const std::vector<std::int64_t>& shape);
[[noreturn]] void throw_not_a_vector(const std::vector<std::int64_t>& shape);

template <class T>
MatrixShape matrix_shape(const CooTensor<T>& tensor) {
  const std::vector<std::int64_t> shape = tensor.shape();
  if (shape.size() != 2) throw_not_a_matrix(shape);
  return {shape[0], shape[1]};
}
template <class T>
MatrixShape matrix_shape(const SlicedCsr<T>& matrix) {
  return {matrix.rows(), matrix.cols()};
}
template <class T>
MatrixShape matrix_shape(const SlicedCsc<T>& matrix) {
  return {matrix.rows(), matrix.cols()};
}

// Calls see(row, column, value) for every stored element, in storage order. The caller has checked
// that the operand is a matrix.
template <class T, class See>
void visit_matrix(const CooTensor<T>& tensor, See&& see) {
  const std::vector<ViewAxis> axes = tensor.layout().axes();
  const ViewAxis row = axes[0], col = axes[1];
  visit(tensor, [&](const std::int32_t* index, T value) {
    see(along(row, index), along(col, index), value);
  });
}
template <class T, class See>
void visit_matrix(const SlicedCsr<T>& matrix, See&& see) {
  const CsrArrays<T>& arrays = matrix.arrays();
  const std::int64_t first = matrix.first_col();
  for (std::int64_t r = 0; r < matrix.rows(); ++r) {
    const Range seen = matrix.row(r);
    for (std::int64_t k = seen.begin; k < seen.end; ++k)
      see(r, arrays.columns[std::size_t(k)] - first, arrays.values[std::size_t(k)]);
  }
}
template <class T, class See>
void visit_matrix(const SlicedCsc<T>& matrix, See&& see) {
  visit_matrix(matrix.transposed(),
               [&](std::int64_t c, std::int64_t r, T value) { see(r, c, value); });
}

// Returns the number of elements of a vector, which has at most one dimension whose length is not
// 1. Throws Error{InvalidArgument} for other shapes.
template <class T>
std::int64_t vector_size(const CooTensor<T>& tensor) {
  std::int64_t size = 1;
  for (const std::int64_t length : tensor.shape()) {
    if (size != 1 && length != 1) throw_not_a_vector(tensor.shape());
    if (length != 1) size = length;
  }
  return size;
}
template <class Sparse>
std::int64_t vector_size(const Sparse& matrix) {
  if (matrix.rows() != 1 && matrix.cols() != 1) throw_not_a_vector({matrix.rows(), matrix.cols()});
  return matrix.rows() == 1 ? matrix.cols() : matrix.rows();
}

// Calls see(position in the vector, value) for every stored element, in storage order.
template <class T, class See>
void visit_vector(const CooTensor<T>& tensor, See&& see) {
  ViewAxis longest;
  for (const ViewAxis& axis : tensor.layout().axes())
    if (axis.length != 1) longest = axis;
  visit(tensor, [&](const std::int32_t* index, T value) { see(along(longest, index), value); });
}
template <class Sparse, class See>
void visit_vector(const Sparse& matrix, See&& see) {
  visit_matrix(matrix, [&](std::int64_t r, std::int64_t c, typename Sparse::Value value) {
    see(r + c, value);
  });
}

}  // namespace tessera::arrays::internal
