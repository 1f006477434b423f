#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "tessera/arrays/tensor/selector.hpp"
#include "tessera/base/dims.hpp"
#include "tessera/base/matrix.hpp"

namespace tessera::arrays {

// An element matrix in four arrays: row r holds positions row_begin[r] up to row_end[r].
template <class T>
struct CsrArrays {
  std::int64_t rows = 0, cols = 0;
  std::vector<T> values;                // [positions]
  std::vector<std::int32_t> columns;    // [positions] ascending in a row
  std::vector<std::int64_t> row_begin;  // [rows]
  std::vector<std::int64_t> row_end;    // [rows]
  friend bool operator==(const CsrArrays&, const CsrArrays&) = default;
};

// A CSR matrix with begin and end pointers, T = float or double. It is a handle: a copy and a view
// share the arrays with the original, and each sees what the others put. clone() gives arrays of
// its own. Pointers of a view are positions in the shared arrays, found when asked for, so a put
// never leaves a view with old ones. Rows may be followed by positions that no row uses: removing
// leaves them, inserting uses them up.
// An index that lies outside is Error{InvalidArgument}; negative ones count from the end. Many
// threads may read matrices that share arrays while nobody puts.
template <class T>
class SlicedCsr {
 public:
  using Value = T;

  // No entries. Error{InvalidArgument} for a size outside 0..2^31 - 1.
  SlicedCsr(std::int64_t rows, std::int64_t cols);
  // Zeros are kept. Error{BadInput} naming the place unless lengths agree, row_begin[r] <=
  // row_end[r] <= row_begin[r + 1], and columns ascend strictly in each row. O(positions + rows).
  explicit SlicedCsr(CsrArrays<T> arrays);

  std::int64_t rows() const { return row_range_.size(); }
  std::int64_t cols() const { return col_range_.size(); }
  // Where the view begins in the shared arrays: its row 0 and column 0 are these there.
  std::int64_t first_row() const { return row_range_.begin; }
  std::int64_t first_col() const { return col_range_.begin; }
  bool is_view() const { return is_view_; }
  // Entries that are seen. O(rows * log(longest row)).
  std::int64_t nnz() const;

  // Positions in the shared arrays of row r, as far as it is seen. O(log(entries of the row)).
  Range row(std::int64_t r) const;
  // The same for all rows, [rows]. An empty row begins and ends where an entry would be put.
  std::vector<std::int64_t> row_begin() const;
  std::vector<std::int64_t> row_end() const;
  // Columns, counted in the view, and values of all that is seen, row by row: [nnz].
  std::vector<std::int32_t> columns() const;
  std::vector<T> values() const;
  // The shared arrays of the whole matrix, valid until the next put.
  const CsrArrays<T>& arrays() const { return *arrays_; }

  // Zero where nothing is stored. O(log(entries of the row)).
  T get(std::int64_t r, std::int64_t c) const;
  // Stores, overwrites, or with zero removes. Overwriting is O(log(entries of the row)), removing
  // O(entries of the row), inserting that or, where no free position follows, O(positions + rows).
  void put(std::int64_t r, std::int64_t c, T value);
  // What is seen becomes the non-zeros of `dense`, [rows][cols] or Error{InvalidArgument}; free
  // positions go. One pass, O(positions + rows + rows * cols of the view).
  void assign(MatrixView<const T> dense);
  // All values that are seen, times `factor`; the pattern stays. O(nnz + rows).
  void scale(T factor);

  // Rows and columns that share the arrays; a point is a row or column of length 1. O(1).
  SlicedCsr view(const MatrixSelector& rows, const MatrixSelector& cols) const;
  SlicedCsr clone() const;

 private:
  SlicedCsr(std::shared_ptr<CsrArrays<T>> arrays, Range rows, Range cols, bool is_view);

  std::shared_ptr<CsrArrays<T>> arrays_;
  Range row_range_, col_range_;  // what is seen of the whole matrix
  bool is_view_ = false;
};

// Column-compressed twin: the SlicedCsr of the transpose, with the names turned. Same rules, same
// costs with rows and columns changed over.
template <class T>
class SlicedCsc {
 public:
  using Value = T;

  SlicedCsc(std::int64_t rows, std::int64_t cols) : transposed_(cols, rows) {}
  // The matrix whose transpose is given; shares its arrays. arrays().row_begin are then the begins
  // of columns, arrays().columns the row of each entry.
  explicit SlicedCsc(SlicedCsr<T> transposed) : transposed_(std::move(transposed)) {}

  const SlicedCsr<T>& transposed() const { return transposed_; }
  std::int64_t rows() const { return transposed_.cols(); }
  std::int64_t cols() const { return transposed_.rows(); }
  bool is_view() const { return transposed_.is_view(); }
  std::int64_t nnz() const { return transposed_.nnz(); }

  Range col(std::int64_t c) const { return transposed_.row(c); }
  std::vector<std::int64_t> col_begin() const { return transposed_.row_begin(); }
  std::vector<std::int64_t> col_end() const { return transposed_.row_end(); }
  // Rows, counted in the view, and values of all that is seen, column by column: [nnz].
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

// Rows and columns by any selector but NewAxis, which is Error{InvalidArgument}. A view, or, when
// one is Specified, a copy: its indices in that order, repeats allowed, one alone too. An index
// that lies outside, and none at all, is Error{InvalidArgument}. The copy is O(rows + entries taken
// * log(entries of a row)), and for specified columns a sort of each row.
template <class T>
SlicedCsr<T> select(const SlicedCsr<T>& matrix, const Selector& rows, const Selector& cols);
template <class T>
SlicedCsc<T> select(const SlicedCsc<T>& matrix, const Selector& rows, const Selector& cols) {
  return SlicedCsc<T>(select(matrix.transposed(), cols, rows));
}

}  // namespace tessera::arrays
