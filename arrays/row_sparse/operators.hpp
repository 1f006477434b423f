#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "tessera/arrays/row_sparse/infer.hpp"

namespace tessera::arrays {

// Operators over arrays in any storage: the result is stored as infer.hpp says, and what falls back
// is recorded in `fallbacks`. Operands are checked first (Error{BadInput}); shapes that do not
// match are Error{InvalidArgument} with both. What is not stored takes no part in a sparse result:
// zero times infinity does not arise there. Results are the same bits every time. T is float or
// double; sums of dot are taken in T, those of reductions in double and rounded once. Threads: as
// reading the operands, and one Fallbacks for each.

// a [m][k], b [k][n] after transposition. csr . dense is O(nnz * n); dense . csr O(m * (nnz + n)),
// its result stores every column that b stores, in every row; csr transposed gives the rows for
// which the csr stores a column.
template <class T>
Array<T> dot(const Array<T>& a, const Array<T>& b, DotForm form, Fallbacks& fallbacks);

// Element by element, same shapes. Sums store what either stores, products what both do; O(stored).
template <class T>
Array<T> combine(Binary op, const Array<T>& a, const Array<T>& b, Fallbacks& fallbacks);
// Array op scalar.
template <class T>
Array<T> combine(Binary op, const Array<T>& a, T scalar, Fallbacks& fallbacks);
// Function of every element; `Round` goes away from zero at halves, `Rint` to even.
template <class T>
Array<T> map(Unary function, const Array<T>& a, Fallbacks& fallbacks);

// Sum or mean of a matrix over axis 0 or 1, or over everything (shape {1}). Error{InvalidArgument}
// for another rank or axis. O(stored + result).
struct SumForm {
  std::optional<std::int64_t> axis = std::nullopt;
  bool keep_dimensions = false;
  bool mean = false;
};
template <class T>
DenseArray<T> sum(const Array<T>& a, SumForm form, Fallbacks& fallbacks);

// Square root of the sum of all squares, without overflow. O(stored).
template <class T>
T norm(const Array<T>& a);

// Sum of the squares of each row, over all dimensions but the first: [rows], and with kept
// dimensions the same as row-sparse [rows][1]. O(stored values).
template <class T>
DenseArray<T> square_sum(const RowSparse<T>& a);
template <class T>
RowSparse<T> square_sum_kept(const RowSparse<T>& a);

// Rows and limits of an element matrix as a csr again. Rows [begin, end); the rows named, in that
// order, repeats allowed; matrices of the same width below each other; every element brought into
// [least, most], which must hold zero. What lies outside is Error{InvalidArgument}. O(stored).
template <class T>
sparse::Csr<T> slice_rows(const sparse::Csr<T>& a, std::int64_t begin, std::int64_t end);
template <class T>
sparse::Csr<T> take_rows(const sparse::Csr<T>& a, std::span<const std::int64_t> rows);
template <class T>
sparse::Csr<T> concat_rows(std::span<const sparse::Csr<T>> parts);
template <class T>
sparse::Csr<T> clip(const sparse::Csr<T>& a, T least, T most);

}  // namespace tessera::arrays
