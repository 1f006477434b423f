#pragma once

#include <cstdint>
#include <span>

#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/host/pass_options.hpp"
#include "tessera/host/sparse_views.hpp"

namespace tessera::host {

// The rest of a product, in this order: C = alpha * A * B + beta * C, then the bias, the activation
// and the mask. With beta 0 the old C is not read. Bias, activation and mask are those of
// layer::PassOptions. T is the type of the operands.
template <class T = float>
struct SpmmOptions {
  float alpha = 1, beta = 0;
  std::span<const float> bias = {};  // [rows of A], or empty
  Activation activation = Activation::None;
  MatrixView<const T> where_positive = {};  // [x][z] C becomes 0 where this is not above 0
};

// Computes C = A * B with what the options add. Nothing is encoded or kept, and A is read where it
// is, or sorted by rows first: the call for a matrix that is multiplied a few times. A matrix that
// is multiplied often is faster as a host::Prepared or in a HostLayer, which are encoded once
// (bench/results/spmm.md).
//
// Shapes: A [x][y], B [y][z], C [x][z]. Operands may have any strides: for [batch][features] pass
// the transposed view. Sums are floats, rounded once to T except that a bias is added to the
// rounded sum.
//
// The bits do not depend on the threads. The terms of a sum are added in the order in which the
// view lists them, but in sixteen lanes in a panel of one column (z is 1, or the last of more
// columns is alone) of elements, and of blocks of 4, 8 or a multiple of 16 columns with indices of
// 32 bits. Compressed columns are sorted by rows if z is at least 256, and coordinates whose rows
// do not ascend if z is at least 64. Otherwise their sums have up to eight parts, consecutive
// places each, which are then added in order: their number follows from the shape and the number of
// places. With beta 1 the old value is the first term of a sum if A is in the order of rows, or
// sorted, and C is float with contiguous rows, not in lanes, else the last.
//
// Throws Error{InvalidArgument} if the sizes do not agree, C shares bytes with an operand or one of
// them is at a null pointer, Error{BadInput} that names the place if the lists are not those of a
// matrix of this size, and Error{LimitExceeded} for sides above 2^31 and for blocks of more than
// 4096 values of 16 bits. C is then unchanged. O(places * block area * z), O(y * z) for copies of
// B, and O(places * threads) for sorting. Allocates a copy of one panel of B and of sums for each
// thread; for columns and unordered coordinates a sorted copy of A, or copies of B and up to eight
// panels of sums; for ascending coordinates x positions. Thread-safe if the executors differ.
//
// Example: spmm<float>(CompressedRows<float>{2, 3, {1, 1}, row_begin, col, values}, b.view(),
//                      c.view(), *executor).
template <class T, class Index, class Position>
void spmm(const CompressedRows<T, Index, Position>& a, MatrixView<const T> b, MatrixView<T> c,
          Executor& executor, const SpmmOptions<T>& options = {});
template <class T, class Index, class Position>
void spmm(const CompressedColumns<T, Index, Position>& a, MatrixView<const T> b, MatrixView<T> c,
          Executor& executor, const SpmmOptions<T>& options = {});
template <class T, class Index>
void spmm(const Coordinates<T, Index>& a, MatrixView<const T> b, MatrixView<T> c,
          Executor& executor, const SpmmOptions<T>& options = {});

// Does the same for a vector x of as many numbers as A has columns and a result y of as many as it
// has rows. A is any of the views above. Example: spmv<float>(a, x, y, *executor).
template <class T, class View>
void spmv(const View& a, std::span<const T> x, std::span<T> y, Executor& executor,
          const SpmmOptions<T>& options = {}) {
  spmm<T>(a, MatrixView<const T>{x.data(), std::ssize(x), 1, 1, 1},
          MatrixView<T>{y.data(), std::ssize(y), 1, 1, 1}, executor, options);
}

}  // namespace tessera::host
