#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/sparse/formats.hpp"

namespace tessera::io {

// The matrix of a file, as a legal element matrix (1 x 1 blocks).
struct ReadMatrix {
  sparse::Csr<double> matrix;
  bool has_values = false;  ///< false: the file has a pattern only, and all values are 1

  // For a pattern whose file is not in the order of `matrix`: the entry of the file, from 0, that
  // each value of the matrix is. The mirror images of a symmetric file are the same entry. Else
  // empty.
  std::vector<std::int64_t> entry_of_value;

  friend bool operator==(const ReadMatrix&, const ReadMatrix&) = default;
};

// Errors of the readers of text. A file that breaks the rules of its format is Error{BadInput}
// "<file>:<line>: fault, the legal range, the remedy". A file that declares more rows or columns
// than max(2^20, 16 * its bytes) or 2^31 - 1 is Error{LimitExceeded}. The memory that a reader
// takes depends on the length of the file and never on the sizes that the file declares. Text is
// ASCII; lines end with LF or CRLF; a comma is never a decimal point, in any locale. The cost is
// one pass over the text and a counting sort. Any number of threads may read.

// Reads a file in the format that the ending of `path` names, in upper or lower case: .smtx, .mtx,
// .txt (a mask), .npz (npz.hpp), .npy and .safetensors (array.hpp; dense arrays, whose zeros are
// not stored; FILE.safetensors#TENSOR names one tensor of a file). Throws Error{BadInput} for
// another ending, a missing file, a directory and anything else that is not a plain file.
ReadMatrix read_matrix(const std::string& path);

// The functions below read one format each. `name` is the name of the file in messages.

// Reads three lines of whole numbers that are separated by commas or spaces: rows, columns,
// non-zeros; rows + 1 row offsets; column indices from 0, ascending in each row. The third line may
// be absent or empty if there are no non-zeros. Blank lines, and lines that start with '%', may be
// anywhere. `has_values` is false.
ReadMatrix read_smtx(std::string_view text, std::string_view name);

// Reads a "matrix" object of Matrix Market:
//   format    coordinate, or array (whose zeros are not stored)
//   field     real, double, integer (magnitude up to 2^53), pattern (coordinate only);
//             complex is refused
//   symmetry  general, symmetric, skew-symmetric; hermitian is refused. Symmetric and
//             skew-symmetric files need a square matrix and are returned with both triangles
// Entries may be in any order, one per line, counted from 1; those of a symmetric matrix may be in
// either triangle. An entry that is given twice, or together with its mirror image, is refused with
// the numbers of both lines. Explicit zeros of coordinate files are stored. "nan" and "inf" are
// legal values. A pattern whose entries are not row by row keeps their order in entry_of_value.
ReadMatrix read_mtx(std::string_view text, std::string_view name);

// Reads a mask: rows, columns, then rows * columns numbers 0 or 1, row by row, separated by any
// white space. `has_values` is false.
ReadMatrix read_mask(std::string_view text, std::string_view name);

}  // namespace tessera::io
