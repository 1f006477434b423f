#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/base/dims.hpp"
#include "tessera/base/error.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::io {

// The places of the rows in a file of weights, so that a part of them can be read without the rest.
struct RowIndex {
  std::int64_t rows = 0, cols = 0;
  bool has_values = false;              // false: the file has a pattern, and all values are 1
  bool has_whole_values = false;        // values are whole numbers (an "integer" .mtx file)
  std::vector<std::int64_t> row_begin;  // [rows + 1] entries before each row
  std::vector<std::int64_t>
      byte_begin;  // [rows + 1] offset of the first byte of each row's entries

  friend bool operator==(const RowIndex&, const RowIndex&) = default;
};

// The error of a file that may be legal, but is not stored row by row. It is Error{BadInput}; a
// program that can read the whole file (read.hpp) may catch it and do so.
class NotByRows : public Error {
 public:
  explicit NotByRows(const std::string& message) : Error(ErrorCode::BadInput, message) {}
};

// Reads through a file once, in pieces, and returns where its rows are. Takes .smtx (read_smtx);
// .mtx files whose entries are row by row: a general "coordinate" matrix that is real, double,
// integer or pattern; and the csr matrices among .npz files (npz.hpp), of which only the row
// offsets are unpacked and `byte_begin` stays empty. Throws NotByRows for other files and endings,
// Error{BadInput} "<path>: byte N: ..." for a file that breaks the rules of its format, and
// Error{LimitExceeded} as the readers of read.hpp do. Columns are not looked at. Memory: 16 bytes
// for each row.
RowIndex index_rows(const std::string& path);

// Returns the rows [rows.begin, rows.end) of a file of which `index` is the index. Reads their
// bytes alone; the arrays of an .npz file, which may be compressed, are unpacked piece by piece up
// to the last entry, and only the entries of these rows are kept. Columns of a row ascend in the
// result; those of .mtx and .npz files may be in any order. T is float or double. Throws
// Error{BadInput} for columns outside the matrix or given twice, or not ascending in an .smtx file,
// for numbers that are none, and for a file that is shorter than its index says; and
// Error{InvalidArgument} for rows that the file does not have.
template <class T>
sparse::Csr<T> read_rows(const std::string& path, const RowIndex& index, Range rows);

}  // namespace tessera::io
