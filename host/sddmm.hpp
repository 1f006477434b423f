#pragma once

#include <cstdint>
#include <span>

#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/host/sparse_views.hpp"

namespace tessera::host {

// The rest of a sampled product: out = alpha * (A * B at the places) + beta * out. With beta 0 the
// old numbers are not read.
struct SddmmOptions {
  float alpha = 1, beta = 0;
};

// Computes the product of two dense matrices at the places of a pattern alone: out[i] = sum over k
// of A[row of place i][k] * B[k][column of place i]. With blocks, out has the values of each block
// of the pattern, as CompressedRows::values. The values of the pattern are not read and may be
// empty. It is the gradient of the values of a sparse matrix W, out = dQ * transpose(S), where
// Q = W * S: pass dQ and the transposed view of S.
//
// Shapes: A [rows of the pattern][k], B [k][columns of the pattern], of any strides. T is the type
// of the operands; Out is T, or float where gradients of 16-bit operands must stay precise. Sums
// are floats, in lanes and panels of 256 k, and are rounded once. The bits do not depend on the
// threads. With beta 1 and float results the old number is the first term, else the last.
// Throws Error{InvalidArgument} if the sizes do not agree or `out` shares bytes with an operand,
// Error{BadInput} that names the place if the lists are not those of a pattern of this size, and
// Error{LimitExceeded} as spmm() does. `out` is then unchanged.
// O(places * block area * k). Copies A where its rows are not contiguous and B where its columns
// are not, or if k is above 256; allocates sums of the places of 64 block rows for each thread
// unless Out is float, alpha 1 and beta 0 or 1. Thread-safe if the executors differ.
// Example: sddmm<float>(pattern, q_grad.view(), s.view().transposed(), gradients, *executor).
template <class T, class Index, class Position, class Out>
void sddmm(const CompressedRows<T, Index, Position>& pattern, MatrixView<const T> a,
           MatrixView<const T> b, std::span<Out> out, Executor& executor,
           const SddmmOptions& options = {});
template <class T, class Index, class Position, class Out>
void sddmm(const CompressedColumns<T, Index, Position>& pattern, MatrixView<const T> a,
           MatrixView<const T> b, std::span<Out> out, Executor& executor,
           const SddmmOptions& options = {});
template <class T, class Index, class Out>
void sddmm(const Coordinates<T, Index>& pattern, MatrixView<const T> a, MatrixView<const T> b,
           std::span<Out> out, Executor& executor, const SddmmOptions& options = {});

}  // namespace tessera::host
