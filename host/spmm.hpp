#pragma once

#include <cstdint>
#include <span>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"

namespace tessera::host {

// A sparse matrix in the caller's memory, in compressed rows: the arrays of SciPy's csr_matrix and
// bsr_matrix and of PyTorch's sparse tensors as they are. T is float, Half or BFloat16; Index is
// std::int32_t or std::int64_t, and Position is Index or std::int64_t, as in sparse::Csr. Columns
// of a row may be in any order, and values at one place are added up. A plain value that refers to
// the arrays.
template <class T, class Index = std::int32_t, class Position = Index>
struct CompressedRows {
  std::int64_t rows = 0, cols = 0;  // elements; whole blocks
  BlockShape block = {1, 1};
  std::span<const Position> row_begin;  // [block rows + 1] positions in `col`
  std::span<const Index> col;           // [places] block columns
  std::span<const T> values;            // [places][block.rows][block.cols]
};

// The rest of a product, in this order: C = alpha * A * B + beta * C, then the bias, then ReLU.
// With beta 0 the old C is not read. Bias and ReLU are those of ForwardOptions.
struct SpmmOptions {
  float alpha = 1, beta = 0;
  std::span<const float> bias = {};  // [rows of A], or empty
  bool relu = false;
};

// Computes C = A * B with what the options add. Nothing is encoded or kept, and A is read where it
// is: the call for a matrix that is multiplied a few times. A layer that multiplies one pattern
// often is faster as a HostLayer, which is encoded once (bench/results/layers.md).
//
// Shapes: A [x][y], B [y][z], C [x][z]. Operands may have any strides: for [batch][features] pass
// the transposed view. One column is the product with a vector. Sums are floats, rounded once to T
// except that a bias is added to the rounded sum. The bits do not depend on the threads. With beta
// 1 the old value is the first term of a sum if C is float with contiguous rows, else the last.
// Throws Error{InvalidArgument} if the sizes do not agree or C shares bytes with an operand,
// Error{BadInput} that names the place if the lists are not those of a matrix of this size, and
// Error{LimitExceeded} for blocks of more than 4096 values of 16 bits. C is then unchanged.
// O(places * block area * z), and O(y * z) for copies of B. Allocates a copy of one panel of B and
// of sums for each thread. Thread-safe if the executors differ.
// Example: spmm<float>({2, 3, {1, 1}, row_begin, col, values}, b.view(), c.view(), *executor);
template <class T, class Index = std::int32_t, class Position = Index>
void spmm(const CompressedRows<T, Index, Position>& a, MatrixView<const T> b, MatrixView<T> c,
          Executor& executor, const SpmmOptions& options = {});

}  // namespace tessera::host
