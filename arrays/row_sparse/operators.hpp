#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "tessera/arrays/row_sparse/infer.hpp"
#include "tessera/base/executor.hpp"

namespace tessera::arrays {

// Operators over arrays in any storage. infer.hpp defines the storage of the result; fallbacks are
// recorded in `fallbacks`. Operands are checked first (Error{BadInput}); shapes that do not match
// are Error{InvalidArgument} with both shapes. Elements that are not stored take no part in a
// sparse result, so zero times infinity does not occur there. The bits of a result are the same
// every time. T is float, double, Half or BFloat16, of combine and map also an integer type; sums
// of dot are taken in T, of the short types in float, those of reductions in double and rounded
// once. Any number of threads may read the operands; each thread needs its own Fallbacks.

// Returns the product of a [m][k] and b [k][n] (sizes after transposition). csr . dense costs
// O(nnz * n). dense . csr costs O(m * (nnz + n)); its result stores, in every row, every column
// that b stores. A transposed csr gives those rows for which the csr stores a column.
template <class T>
Array<T> dot(const Array<T>& a, const Array<T>& b, DotForm form, Fallbacks& fallbacks);

// Does the same, csr . dense on all threads of an executor, with the same bits.
template <class T>
Array<T> dot(const Array<T>& a, const Array<T>& b, DotForm form, Fallbacks& fallbacks,
             Executor& executor);

// Combines two arrays of one shape element by element. A sparse sum stores the places that either
// operand stores, a sparse product those that both store. O(stored).
template <class T>
Array<T> combine(Binary op, const Array<T>& a, const Array<T>& b, Fallbacks& fallbacks);

// Combines every element of an array with a scalar.
template <class T>
Array<T> combine(Binary op, const Array<T>& a, T scalar, Fallbacks& fallbacks);

// Applies a function to every element. `Round` rounds halves away from zero, `Rint` to even.
template <class T>
Array<T> map(Unary function, const Array<T>& a, Fallbacks& fallbacks);

// Do the same and write the result to `out`, which keeps its storage and whose shape must be that
// of the result. Every conversion is made, also those between row_sparse and csr, which
// cast_storage refuses. An error leaves `out` unchanged. Example: the product of a transposed csr
// and a dense array is row_sparse; with a dense `out` it is written there.
template <class T>
void dot(const Array<T>& a, const Array<T>& b, DotForm form, Fallbacks& fallbacks, Array<T>& out);
template <class T>
void combine(Binary op, const Array<T>& a, const Array<T>& b, Fallbacks& fallbacks, Array<T>& out);
template <class T>
void map(Unary function, const Array<T>& a, Fallbacks& fallbacks, Array<T>& out);

// The form of a sum: over axis 0 or 1 of a matrix, or over all elements (shape {1}).
struct SumForm {
  std::optional<std::int64_t> axis = std::nullopt;
  bool keep_dimensions = false;
  bool mean = false;
};

// Returns the sum or mean of a matrix. Throws Error{InvalidArgument} for another rank or axis.
// O(stored + result).
template <class T>
DenseArray<T> sum(const Array<T>& a, SumForm form, Fallbacks& fallbacks);

// Returns the square root of the sum of all squares, without overflow. O(stored).
template <class T>
T norm(const Array<T>& a);

// Returns the sum of squares of each row, over all dimensions except the first: [rows].
// O(stored values).
template <class T>
DenseArray<T> square_sum(const RowSparse<T>& a);

// Returns the same as a row-sparse array [rows][1]. O(stored values).
template <class T>
RowSparse<T> square_sum_kept(const RowSparse<T>& a);

// The functions below return an element matrix as a csr in O(stored), and throw
// Error{InvalidArgument} for arguments outside the ranges they name.

// Returns the rows [begin, end).
template <class T>
sparse::Csr<T> slice_rows(const sparse::Csr<T>& a, std::int64_t begin, std::int64_t end);

// Returns these rows in this order; a row may be repeated.
template <class T>
sparse::Csr<T> take_rows(const sparse::Csr<T>& a, std::span<const std::int64_t> rows);

// Returns matrices of one width below each other.
template <class T>
sparse::Csr<T> concat_rows(std::span<const sparse::Csr<T>> parts);

// Returns the matrix with every element clamped to [least, most], which must contain zero.
template <class T>
sparse::Csr<T> clip(const sparse::Csr<T>& a, T least, T most);

}  // namespace tessera::arrays
