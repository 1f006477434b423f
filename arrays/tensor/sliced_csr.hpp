#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "tessera/arrays/tensor/selector.hpp"
#include "tessera/base/dims.hpp"
#include "tessera/base/matrix.hpp"

namespace tessera::arrays {

namespace internal {
template <class T>
struct SlicedAccess;
}

// An element matrix in four arrays: row r consists of the positions row_begin[r] .. row_end[r] - 1.
template <class T>
struct CsrArrays {
  std::int64_t rows = 0, cols = 0;
  std::vector<T> values;                // [positions]
  std::vector<std::int32_t> columns;    // [positions] ascending in a row
  std::vector<std::int64_t> row_begin;  // [rows]
  std::vector<std::int64_t> row_end;    // [rows]
  friend bool operator==(const CsrArrays&, const CsrArrays&) = default;
};

// A CSR matrix with begin and end pointers, T any type of ops/element.hpp. The object is a handle:
// copies and views share the arrays of the original, and each sees the puts of the others. clone()
// makes separate arrays. The pointers of a view are positions in the shared arrays; they are
// computed when they are asked for, so a put never makes those of a view stale. A row may be
// followed by positions that no row uses: removing an element leaves one, and inserting an element
// uses one. An index outside the matrix is Error{InvalidArgument}; negative indices count from the
// end. Several threads may read matrices that share arrays while no thread puts.
template <class T>
class SlicedCsr {
 public:
  using Value = T;

  // Makes a matrix without entries. Throws Error{InvalidArgument} for a size outside 0..2^31 - 1.
  SlicedCsr(std::int64_t rows, std::int64_t cols);

  // Makes a matrix of these arrays; zeros are kept. Throws Error{BadInput}, which names the place,
  // unless lengths agree, row_begin[r] <= row_end[r] <= row_begin[r + 1], and columns ascend
  // strictly in each row. O(positions + rows).
  explicit SlicedCsr(CsrArrays<T> arrays);

  std::int64_t rows() const { return row_range_.size(); }
  std::int64_t cols() const { return col_range_.size(); }

  // Return the row and column of the whole matrix at which the view begins.
  std::int64_t first_row() const { return row_range_.begin; }
  std::int64_t first_col() const { return col_range_.begin; }

  bool is_view() const { return is_view_; }

  // Returns the number of entries in the view. O(rows * log(longest row)).
  std::int64_t nnz() const;

  // Returns the positions in the shared arrays of the part of row r that is in the view.
  // O(log(entries of the row)).
  Range row(std::int64_t r) const;

  // Return the same for all rows, [rows]. An empty row begins and ends where an entry would be put.
  std::vector<std::int64_t> row_begin() const;
  std::vector<std::int64_t> row_end() const;

  // Return the columns, counted in the view, and the values of all entries in the view, row by
  // row: [nnz].
  std::vector<std::int32_t> columns() const;
  std::vector<T> values() const;

  // Returns the shared arrays of the whole matrix, which are valid until the next put.
  const CsrArrays<T>& arrays() const { return *arrays_; }

  // Returns the value at a place, or zero if nothing is stored there. O(log(entries of the row)).
  T get(std::int64_t r, std::int64_t c) const;

  // Stores or overwrites a value, or removes the entry if the value is zero. Overwriting costs
  // O(log(entries of the row)) and removing O(entries of the row). Inserting costs O(entries of the
  // row) if a free position follows the row, else O(positions + rows).
  void put(std::int64_t r, std::int64_t c, T value);

  // Replaces the entries of the view by the non-zeros of `dense`, which must be [rows][cols], else
  // Error{InvalidArgument}. Free positions disappear. One pass, O(positions + rows + rows * cols of
  // the view).
  void assign(MatrixView<const T> dense);

  // Multiplies all values in the view by `factor`; the pattern stays. O(nnz + rows).
  void scale(T factor);

  // Returns a view of these rows and columns that shares the arrays. A point selects a row or
  // column and keeps it as a dimension of length 1. O(1).
  SlicedCsr view(const MatrixSelector& rows, const MatrixSelector& cols) const;

  // Returns the entries of the view in separate arrays. O(nnz + rows).
  SlicedCsr clone() const;

 private:
  friend struct internal::SlicedAccess<T>;
  SlicedCsr(std::shared_ptr<CsrArrays<T>> arrays, Range rows, Range cols, bool is_view);

  std::shared_ptr<CsrArrays<T>> arrays_;
  Range row_range_, col_range_;  // the rows and columns of the whole matrix in the view
  bool is_view_ = false;
};

// The column-compressed counterpart: a SlicedCsr of the transpose with the names exchanged. The
// rules are the same, and so are the costs with rows and columns exchanged.
template <class T>
class SlicedCsc {
 public:
  using Value = T;

  SlicedCsc(std::int64_t rows, std::int64_t cols) : transposed_(cols, rows) {}

  // Makes the matrix whose transpose is given, and shares its arrays: transposed().arrays() has the
  // begins of columns in row_begin and the row of each entry in columns.
  explicit SlicedCsc(SlicedCsr<T> transposed) : transposed_(std::move(transposed)) {}

  const SlicedCsr<T>& transposed() const { return transposed_; }
  std::int64_t rows() const { return transposed_.cols(); }
  std::int64_t cols() const { return transposed_.rows(); }
  bool is_view() const { return transposed_.is_view(); }
  std::int64_t nnz() const { return transposed_.nnz(); }

  Range col(std::int64_t c) const { return transposed_.row(c); }
  std::vector<std::int64_t> col_begin() const { return transposed_.row_begin(); }
  std::vector<std::int64_t> col_end() const { return transposed_.row_end(); }

  // Return the rows, counted in the view, and the values of all entries in the view, column by
  // column: [nnz].
  std::vector<std::int32_t> row_indices() const { return transposed_.columns(); }
  std::vector<T> values() const { return transposed_.values(); }

  T get(std::int64_t r, std::int64_t c) const { return transposed_.get(c, r); }
  void put(std::int64_t r, std::int64_t c, T value) { transposed_.put(c, r, value); }
  void assign(MatrixView<const T> dense) { transposed_.assign(dense.transposed()); }
  void scale(T factor) { transposed_.scale(factor); }

  SlicedCsc view(const MatrixSelector& rows, const MatrixSelector& cols) const {
    return SlicedCsc(transposed_.view(cols, rows));
  }
  SlicedCsc clone() const { return SlicedCsc(transposed_.clone()); }

 private:
  SlicedCsr<T> transposed_;
};

// Return the selected rows and columns. The result is a view or, if a selector is Specified, a copy
// with its indices in that order; an index may be repeated, and a single index is copied too.
// Throw Error{InvalidArgument} for NewAxis, for an index outside the matrix and for Specified
// without indices. The copy costs O(rows + copied entries * log(entries of a row)) and, for
// specified columns, a sort of each row.
template <class T>
SlicedCsr<T> select(const SlicedCsr<T>& matrix, const Selector& rows, const Selector& cols);
template <class T>
SlicedCsc<T> select(const SlicedCsc<T>& matrix, const Selector& rows, const Selector& cols) {
  return SlicedCsc<T>(select(matrix.transposed(), cols, rows));
}

}  // namespace tessera::arrays
