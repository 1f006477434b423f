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

// Arrays of any rank over T = float or double, as plain values. Nothing is enforced here: check()
// says what is legal, and every function that takes one checks it first.

// Row-major, every element stored.
template <class T>
struct DenseArray {
  std::vector<std::int64_t> shape;
  std::vector<T> values;  // [product of shape]
  friend bool operator==(const DenseArray&, const DenseArray&) = default;
};

// Some slices along the first dimension are stored whole, the others are zero: what a gradient of
// an embedding looks like. "Row" means such a slice whatever the rank, which is at least 1.
// Example: rows 1, 4 and values 1 2 3 4 of shape 6 x 2 hold 1 2 in row 1 and 3 4 in row 4.
template <class T>
struct RowSparse {
  std::vector<std::int64_t> shape = {0};
  std::vector<std::int64_t> rows;  // [stored] ascending strictly
  std::vector<T> values;           // [stored][row_size()]

  std::int64_t stored() const { return static_cast<std::int64_t>(rows.size()); }
  // Elements of a row: the product of the shape without its first dimension.
  std::int64_t row_size() const;
  std::span<T> row(std::int64_t i) {  // the i-th that is stored
    return {values.data() + i * row_size(), static_cast<std::size_t>(row_size())};
  }
  std::span<const T> row(std::int64_t i) const {
    return {values.data() + i * row_size(), static_cast<std::size_t>(row_size())};
  }
  friend bool operator==(const RowSparse&, const RowSparse&) = default;
};

// The three ways an array may be stored, and an array in any of them. A Csr is an element matrix.
enum class Storage { Dense, RowSparse, Csr };
std::string to_string(Storage storage);  // "dense", "row_sparse", "csr"

// An array in any of the three storages.
template <class T>
using Array = std::variant<DenseArray<T>, RowSparse<T>, sparse::Csr<T>>;

// How it is stored, and the size of each dimension.
template <class T>
Storage storage_of(const Array<T>& array);
template <class T>
std::vector<std::int64_t> shape_of(const Array<T>& array);

// Throws Error{BadInput} that names array, position, legal range and remedy unless: dimensions are
// at least 0 and their product fits in 64 bits; there are as many values as the shape or the rows
// say; rows ascend strictly and lie inside the shape; a Csr is legal by sparse/check.hpp. Other
// blocks than 1 x 1 are Error{InvalidArgument}. O(rank + stored rows), for a Csr O(elements +
// rows); allocates nothing. Any value is legal, NaN too.
template <class T>
void check(const DenseArray<T>& array);
template <class T>
void check(const RowSparse<T>& array);
template <class T>
void check(const Array<T>& array);

// No row stored. Error{BadInput} as check().
template <class T>
RowSparse<T> row_sparse_zeros(std::vector<std::int64_t> shape);
// From stored rows: `data` is [rows][...]. Without a shape it is [last row + 1][...]; without a
// shape and rows there is none, which is Error{BadInput}, as is a shape whose dimensions behind
// the first are not those of `data`.
template <class T>
RowSparse<T> row_sparse(const DenseArray<T>& data, std::vector<std::int64_t> rows,
                        std::optional<std::vector<std::int64_t>> shape = std::nullopt);

// The values in another type, rounded to nearest. O(values).
template <class U, class T>
RowSparse<U> cast(const RowSparse<T>& array);

// A matrix as a dense array and back; Error{InvalidArgument} for another rank than two.
template <class T>
DenseArray<T> to_array(MatrixView<const T> matrix);
template <class T>
Matrix<T> to_matrix(const DenseArray<T>& array);

// One line: "row-sparse array 6 x 2, 2 rows stored".
template <class T>
std::ostream& operator<<(std::ostream& out, const DenseArray<T>& array);
template <class T>
std::ostream& operator<<(std::ostream& out, const RowSparse<T>& array);

}  // namespace tessera::arrays
