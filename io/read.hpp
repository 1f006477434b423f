#pragma once

#include <string>
#include <string_view>

#include "tessera/sparse/formats.hpp"

namespace tessera::io {

// What a file holds, as a legal element matrix (1 x 1 blocks).
struct ReadMatrix {
  sparse::Csr<double> matrix;
  bool has_values = false;  // false: the file holds a pattern only, all values are 1

  friend bool operator==(const ReadMatrix&, const ReadMatrix&) = default;
};

// Errors of all readers. A file that breaks the rules of its format is Error{BadInput}
// "<file>:<line>: what is wrong, the legal range, the remedy". A file that declares more rows or
// columns than max(2^20, 16 * its bytes) or 2^31 - 1 is Error{LimitExceeded}. Memory follows the
// length of the file and never what it declares. Text is ASCII; lines end with LF or CRLF; a comma
// is never a decimal point, whatever the locale. Cost: one pass over the text and a counting sort.
// Any number of threads may read.

// By the ending of `path`, in any case: .smtx, .mtx, .txt (a mask), .npz (npz.hpp), .npy and
// .safetensors (array.hpp; dense, zeros are not stored; FILE.safetensors#TENSOR names one). Another
// ending, a missing file, a directory and anything else that is not a plain file are
// Error{BadInput}.
ReadMatrix read_matrix(const std::string& path);

// The readers of one format. `name` stands for the file in messages.

// Three lines of whole numbers between commas or spaces: rows, columns, non-zeros; rows + 1 row
// offsets; column indices from 0, ascending in each row. The third may be absent or empty when
// there are no non-zeros. Blank lines, and lines that start with '%', may stand anywhere.
ReadMatrix read_smtx(std::string_view text, std::string_view name);

// Matrix Market, "matrix" objects:
//   format    coordinate, or array (whose zeros are not stored)
//   field     real, double, integer (magnitude up to 2^53), pattern (coordinate only);
//             complex is refused
//   symmetry  general, symmetric, skew-symmetric; hermitian is refused. The last two need a square
//             matrix and come back with both triangles
// Entries come in any order, one a line, counted from 1; those of a symmetric matrix may lie in
// either triangle. An entry given twice, also as its own mirror image, is refused with both lines.
// Explicit zeros are stored. Values "nan" and "inf" are read as what they say.
ReadMatrix read_mtx(std::string_view text, std::string_view name);

// Rows, columns, then rows * columns times 0 or 1, row by row, between any white space.
ReadMatrix read_mask(std::string_view text, std::string_view name);

}  // namespace tessera::io
