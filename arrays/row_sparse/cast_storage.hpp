#pragma once

#include <cstdint>
#include <span>

#include "tessera/arrays/row_sparse/arrays.hpp"

namespace tessera::arrays {

// Between the storages of an array, and what changes an array in place. Inputs are checked first;
// an error leaves every argument as it was. Any number of threads may read one array.

// The same array stored otherwise:
//   from \ to    dense    row_sparse                             csr
//   dense        copy     rows with any element but zero kept    two dimensions only
//   row_sparse   yes      copy                                   no
//   csr          yes      no                                     copy
// What is not there is Error{InvalidArgument} (to_csr(RowSparse) and to_row_sparse(Csr) go the two
// ways by name). -0 counts as zero, NaN does not. O(elements), copies O(stored).
template <class T>
Array<T> cast_storage(const Array<T>& array, Storage to);

// All rows stored whole; only rows with anything but zeros. O(rows * row size).
template <class T>
DenseArray<T> to_dense(const RowSparse<T>& array);
template <class T>
RowSparse<T> to_row_sparse(const DenseArray<T>& array);
// The element matrix of a row-sparse array of rank two, stored zeros kept; Error{InvalidArgument}
// for another rank. O(stored values + rows).
template <class T>
sparse::Csr<T> to_csr(const RowSparse<T>& array);
// Rows that store any element of an element matrix. O(rows + stored rows * cols).
template <class T>
RowSparse<T> to_row_sparse(const sparse::Csr<T>& matrix);

// `destination` gets the elements of `source` and keeps its own storage. Shapes that differ and
// casts that cast_storage refuses are Error{InvalidArgument}. Copying an array to itself does
// nothing and answers false.
template <class T>
bool copy_to(const Array<T>& source, Array<T>& destination);

// Every element of `array` becomes `value`; the storage stays. All rows of a row-sparse array are
// then stored, none when the value is zero. For a csr Error{InvalidArgument}.
template <class T>
void fill(Array<T>& array, T value);

// The rows asked for and no others: absent ones are stored as zeros. `rows` ascends strictly, else
// Error{InvalidArgument}; a row outside the array too. Index is std::int32_t, std::int64_t or
// float (whole numbers). O(asked * row_size + stored). Also the gradient of retain.
template <class T, class Index>
RowSparse<T> retain(const RowSparse<T>& array, std::span<const Index> rows);

}  // namespace tessera::arrays
