#pragma once

#include <utility>

#include "tessera/base/matmul.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/base/problem.hpp"

namespace tessera::tools {

// Returns the product whose sizes are those of a layer, which may have a part of its columns.
MatMulProblem product_of(const MatMulProblem& asked, const Problem& layer);

// Copies the matrices of all groups, each transposed if that is wanted.
template <class T>
void copy_groups(bool transposes, MatrixView<const T> from, MatrixView<T> to, std::int64_t groups) {
  if (transposes) return transpose_groups<T>(from, to, groups);
  for (std::int64_t r = 0; r < to.rows; ++r)
    for (std::int64_t c = 0; c < to.cols; ++c) to(r, c) = from(r, c);
}

// Returns the dense operand of a product as its caller stores it, from the S of its layer.
template <class T>
Matrix<T> as_stored(const MatMulProblem& product, MatrixView<const T> s) {
  const MatrixShape shape = dense_shape(product);
  Matrix<T> stored(product.groups * shape.rows, shape.cols);
  copy_groups<T>(is_dense_by_column(product), s, stored.view(), product.groups);
  return stored;
}

// Returns memory for the result of a product as its caller has it.
template <class T>
Matrix<T> stored_result(const MatMulProblem& product) {
  const MatrixShape shape = result_shape(product);
  return {product.groups * shape.rows, shape.cols};
}

// Writes a result as the product's caller has it to the Q of its layer.
template <class T>
void take_result(const MatMulProblem& product, MatrixView<const T> result, MatrixView<T> q) {
  copy_groups<T>(is_result_by_column(product), result, q, product.groups);
}

}  // namespace tessera::tools
