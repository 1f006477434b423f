#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "tessera/arrays/tensor/coo_tensor.hpp"
#include "tessera/arrays/tensor/sliced_csr.hpp"
#include "tessera/base/matrix.hpp"

namespace tessera::arrays {

// BLAS with one sparse operand: X, A is a CooTensor, SlicedCsr or SlicedCsc of float or double, or
// a view of one; everything else is dense. A sparse vector is what has at most one dimension that
// is not of length 1, so rows and columns of a matrix are vectors; anything else, and sizes that do
// not match, is Error{InvalidArgument} with both sizes. What is not stored takes no part: zero
// times infinity does not arise there. Dense operands must not overlap. n is what nnz() visits.
// Threads: as reading the sparse operand; rot and scal write it.

// Sums of level 1 are taken in double and rounded once, O(n).
template <class X>
typename X::Value dot(const X& x, std::span<const typename X::Value> y);
// Scaled by the largest magnitude where needed, so squares neither overflow nor vanish.
template <class X>
typename X::Value nrm2(const X& x);
template <class X>
typename X::Value asum(const X& x);

// Position in the vector of the stored element with the largest (smallest) magnitude, the first in
// the vector of several; what is not stored does not count, NaN only where there is nothing else.
// Nothing when no element is stored. Example: [1, 2, 0, 4] with three stored gives 3 (0).
template <class X>
std::optional<std::int64_t> iamax(const X& x);
template <class X>
std::optional<std::int64_t> iamin(const X& x);

// y += alpha * x. O(n).
template <class X>
void axpy(typename X::Value alpha, const X& x, std::span<typename X::Value> y);

// x, y = cosine * x + sine * y, cosine * y - sine * x over the whole vectors: x fills up where y is
// not zero, through a view the original too. Elements of x that become zero are removed.
// O(size * log n) for a tensor, O(size + positions + rows) for CSR and CSC.
template <class X>
void rot(X& x, std::span<typename X::Value> y, typename X::Value cosine, typename X::Value sine);

// x = alpha * x on what is stored, of any shape; through a view the original too. The pattern stays
// as it is, for alpha = 0 too. O(n).
template <class X>
void scal(typename X::Value alpha, X& x);

// A matrix as it is, or turned over.
enum class Op { Plain, Transposed };

// result = alpha * op(A) * operand + beta * result. With beta = 0 the result is not read.
template <class T>
struct Scale {
  T alpha = 1, beta = 0;
  Op op = Op::Plain;
};

// y = alpha * op(A) * x + beta * y; A [m][k], op(A) * x as long as y. Sums in T, in storage order,
// for the rows of a CSR and for the columns of a transposed CSC in sixteen interleaved lanes: the
// same bits on every instruction set. O(n + m).
template <class A>
void gemv(const A& a, std::span<const typename A::Value> x, std::span<typename A::Value> y,
          Scale<typename A::Value> scale = {});

// C = alpha * op(A) * B + beta * C with op(A) [m][k], B [k][n], C [m][n], any strides; rows of B
// and C that are contiguous are fastest. O((nnz + m) * n).
template <class A>
void gemm(const A& a, MatrixView<const typename A::Value> b, MatrixView<typename A::Value> c,
          Scale<typename A::Value> scale = {});

}  // namespace tessera::arrays
