#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "tessera/arrays/tensor/coo_tensor.hpp"
#include "tessera/arrays/tensor/sliced_csr.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"

namespace tessera::arrays {

// BLAS functions with one sparse operand. The sparse operand (X or A) is a CooTensor, SlicedCsr or
// SlicedCsc of float or double, or a view of one; all other operands are dense. A sparse vector has
// at most one dimension whose length is not 1, so rows and columns of a matrix are vectors. Other
// shapes, and sizes that do not match, are Error{InvalidArgument} with both sizes. Elements that
// are not stored take no part, so zero times infinity does not occur there. Dense operands must not
// overlap. In costs, n is the number of entries that nnz() visits. The thread rule is that of
// reading the sparse operand, except that rot and scal write to it.

// Returns the sum of the products x[i] * y[i]. The sums of the functions of level 1 are taken in
// double and rounded once. O(n).
template <class X>
typename X::Value dot(const X& x, std::span<const typename X::Value> y);

// Returns the Euclidean norm. Values are scaled by the largest magnitude if squares would overflow
// or underflow. O(n).
template <class X>
typename X::Value nrm2(const X& x);

// Returns the sum of the magnitudes. O(n).
template <class X>
typename X::Value asum(const X& x);

// Return the position in the vector of the stored element with the largest (smallest) magnitude.
// The first of several in the vector wins; a NaN is chosen only if all stored elements are NaN.
// Return nothing if no element is stored. O(n). Example: [1, 2, 0, 4] with three stored elements
// gives 3 (0).
template <class X>
std::optional<std::int64_t> iamax(const X& x);
template <class X>
std::optional<std::int64_t> iamin(const X& x);

// Computes y += alpha * x. O(n).
template <class X>
void axpy(typename X::Value alpha, const X& x, std::span<typename X::Value> y);

// Computes x, y = cosine * x + sine * y, cosine * y - sine * x over the whole vectors: x gets
// entries where y is not zero, and entries of x that become zero are removed. If x is a view, the
// original changes too. O(size * log n) for a tensor, O(size + positions + rows) for CSR and CSC.
template <class X>
void rot(X& x, std::span<typename X::Value> y, typename X::Value cosine, typename X::Value sine);

// Computes x = alpha * x for the stored elements of an operand of any shape. If x is a view, the
// original changes too. The pattern stays the same, even for alpha = 0. O(n).
template <class X>
void scal(typename X::Value alpha, X& x);

// The form in which a matrix enters a product: unchanged or transposed.
enum class Op { Plain, Transposed };

// The parameters of result = alpha * op(A) * operand + beta * result. If beta is 0, the result is
// not read.
template <class T>
struct Scale {
  T alpha = T(1), beta = T(0);
  Op op = Op::Plain;
};

// Computes y = alpha * op(A) * x + beta * y with op(A) [m][k], x [k] and y [m]. Sums are taken in T
// in storage order; the rows of a CSR, and the columns of a transposed CSC, are summed in sixteen
// interleaved lanes. The bits are the same on every instruction set. O(n + m).
template <class A>
void gemv(const A& a, std::span<const typename A::Value> x, std::span<typename A::Value> y,
          Scale<typename A::Value> scale = {});

// Computes C = alpha * op(A) * B + beta * C with op(A) [m][k], B [k][n] and C [m][n]. Does what the
// function with an executor below does, on the calling thread. Strides may be any.
// O((nnz + m) * n).
template <class A>
void gemm(const A& a, MatrixView<const typename A::Value> b, MatrixView<typename A::Value> c,
          Scale<typename A::Value> scale = {});

// Compute the same on all threads of an executor, over any type of ops/element.hpp. Threads take
// rows of op(A), so the bits do not depend on their number. A SlicedCsr with Op::Plain and a
// SlicedCsc with Op::Transposed are read in place; every other operand is first sorted into rows,
// O(n + m). In float, Half and BFloat16 gemm runs on host::spmm (host/spmm.hpp) if the rows of
// op(A) follow one another without gaps and show all columns, and so does gemv in the two short
// types: sums are floats, in the order of the entries, and C = alpha * sum + beta * C is rounded
// once. All other sums are taken in T in storage order, those of Half and BFloat16 in float with
// one rounding at the end, those of integers exactly or Error{LimitExceeded}.
template <class A>
void gemv(const A& a, std::span<const typename A::Value> x, std::span<typename A::Value> y,
          Scale<typename A::Value> scale, Executor& executor);
template <class A>
void gemm(const A& a, MatrixView<const typename A::Value> b, MatrixView<typename A::Value> c,
          Scale<typename A::Value> scale, Executor& executor);

}  // namespace tessera::arrays
