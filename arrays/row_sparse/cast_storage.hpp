#pragma once

#include <cstdint>
#include <span>

#include "tessera/arrays/row_sparse/arrays.hpp"

namespace tessera::arrays {

// Conversions between the storages of an array, and functions that change an array in place. Inputs
// are checked first; an error leaves every argument unchanged. Any number of threads may read one
// array.

// Returns the same array in another storage:
//   from \ to    dense    row_sparse                             csr
//   dense        copy     rows with a non-zero element           two dimensions only
//   row_sparse   yes      copy                                   no
//   csr          yes      no                                     copy
// Throws Error{InvalidArgument} for the conversions marked "no"; to_csr(RowSparse) and
// to_row_sparse(Csr) make these two explicitly. -0 counts as zero, NaN does not. O(elements),
// copies O(stored).
template <class T>
Array<T> cast_storage(const Array<T>& array, Storage to);

// Returns the array with all elements stored. O(rows * row size).
template <class T>
DenseArray<T> to_dense(const RowSparse<T>& array);

// Returns the rows that have a non-zero element. O(rows * row size).
template <class T>
RowSparse<T> to_row_sparse(const DenseArray<T>& array);

// Returns a row-sparse array of rank two as an element matrix; stored zeros are kept. Throws
// Error{InvalidArgument} for another rank. O(stored values + rows).
template <class T>
sparse::Csr<T> to_csr(const RowSparse<T>& array);

// Returns the rows of an element matrix that have a stored element. O(rows + stored rows * cols).
template <class T>
RowSparse<T> to_row_sparse(const sparse::Csr<T>& matrix);

// Copies the elements of `source` to `destination`, which keeps its storage. Throws
// Error{InvalidArgument} if the shapes differ, and for conversions that cast_storage refuses.
// Returns false, and does nothing, if both are the same object.
template <class T>
bool copy_to(const Array<T>& source, Array<T>& destination);

// Sets every element of `array` to `value`; the storage stays the same. A row-sparse array then
// stores all rows, or none if the value is zero. Throws Error{InvalidArgument} for a csr.
template <class T>
void fill(Array<T>& array, T value);

// Returns an array that stores exactly these rows; rows that `array` does not store become stored
// zeros. Throws Error{InvalidArgument} unless `rows` ascends strictly and is inside the array.
// Index is std::int32_t, std::int64_t or float (whole numbers). The same function computes
// the gradient of retain. O(rows.size() * row_size + stored).
template <class T, class Index>
RowSparse<T> retain(const RowSparse<T>& array, std::span<const Index> rows);

}  // namespace tessera::arrays
