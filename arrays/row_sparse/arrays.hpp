#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "tessera/base/matrix.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::arrays {

// Arrays of any rank over T = float or double, as plain values. The types enforce no rules: check()
// defines a legal array, and every function that takes an array checks it first.

// An array with every element stored, row-major.
template <class T>
struct DenseArray {
  std::vector<std::int64_t> shape;
  std::vector<T> values;  // [product of shape]
  friend bool operator==(const DenseArray&, const DenseArray&) = default;
};

// An array of which some slices along the first dimension are stored whole and the others are zero,
// as in the gradient of an embedding. Such a slice is called a row for any rank, which is at least
// 1. Example: with shape 6 x 2, rows 1 4 and values 1 2 3 4, row 1 is 1 2 and row 4 is 3 4.
template <class T>
struct RowSparse {
  std::vector<std::int64_t> shape = {0};
  std::vector<std::int64_t> rows;  // [stored] ascending strictly
  std::vector<T> values;           // [stored][row_size()]

  std::int64_t stored() const { return static_cast<std::int64_t>(rows.size()); }

  // Returns the number of elements of a row: the product of the shape without its first dimension.
  std::int64_t row_size() const;

  // Return the i-th stored row.
  std::span<T> row(std::int64_t i) {
    return {values.data() + i * row_size(), static_cast<std::size_t>(row_size())};
  }
  std::span<const T> row(std::int64_t i) const {
    return {values.data() + i * row_size(), static_cast<std::size_t>(row_size())};
  }
  friend bool operator==(const RowSparse&, const RowSparse&) = default;
};

// The storage of an array.
enum class Storage { Dense, RowSparse, Csr };

// Returns "dense", "row_sparse" or "csr".
std::string to_string(Storage storage);

// An array in any of the three storages. The Csr is an element matrix.
template <class T>
using Array = std::variant<DenseArray<T>, RowSparse<T>, sparse::Csr<T>>;

// Return the storage of an array, and the size of each dimension.
template <class T>
Storage storage_of(const Array<T>& array);
template <class T>
std::vector<std::int64_t> shape_of(const Array<T>& array);

// Throws Error{BadInput}, which names the array, the position, the legal range and the remedy,
// unless all of this holds: dimensions are at least 0 and their product fits in 64 bits; the number
// of values agrees with the shape or the rows; rows ascend strictly and are inside the shape; a Csr
// is legal by sparse/check.hpp. Other blocks than 1 x 1 are Error{InvalidArgument}. Any value is
// legal, NaN too. O(rank + stored rows), for a Csr O(elements + rows); allocates nothing.
template <class T>
void check(const DenseArray<T>& array);
template <class T>
void check(const RowSparse<T>& array);
template <class T>
void check(const Array<T>& array);

// Returns an array without stored rows. Throws Error{BadInput} as check() does.
template <class T>
RowSparse<T> row_sparse_zeros(std::vector<std::int64_t> shape);

// Returns an array with these stored rows; `data` is [rows][...]. Without a shape, the shape is
// [last row + 1][...]. Throws Error{BadInput} if there are neither a shape nor rows, and if the
// dimensions of the shape after the first are not those of `data`.
template <class T>
RowSparse<T> row_sparse(const DenseArray<T>& data, std::vector<std::int64_t> rows,
                        std::optional<std::vector<std::int64_t>> shape = std::nullopt);

// Returns the array with values of another type, rounded to nearest. O(values).
template <class U, class T>
RowSparse<U> cast(const RowSparse<T>& array);

// Convert a matrix to a dense array and back. Throw Error{InvalidArgument} for another rank than
// two.
template <class T>
DenseArray<T> to_array(MatrixView<const T> matrix);
template <class T>
Matrix<T> to_matrix(const DenseArray<T>& array);

// Write a summary of one line, for example "row-sparse array 6 x 2, 2 rows stored".
template <class T>
std::ostream& operator<<(std::ostream& out, const DenseArray<T>& array);
template <class T>
std::ostream& operator<<(std::ostream& out, const RowSparse<T>& array);

}  // namespace tessera::arrays
