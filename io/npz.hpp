#pragma once

#include <string>
#include <string_view>

#include "tessera/sparse/formats.hpp"

namespace tessera::io {

// Files of SciPy's save_npz: a zip archive of the arrays (array.hpp) format, shape, data and
//   csr, csc  indices, indptr          bsr  the same, with data [blocks][rows][cols]
//   coo       row and col, or coords   (dia is refused)

// Returns true if the library was built with libzip. Without it, read_npz and write_npz throw
// Error{InvalidArgument}, which says so.
bool can_read_npz();

// Reads a file into an element matrix; blocks of a bsr are stored as all their elements, zeros
// included. Entries may be in any order; a place that is given twice is refused.
//
// Throws Error{BadInput} "<name>: ...", which names the array and the entry. Nothing is unpickled.
// Only the arrays that the format needs are unpacked, in pieces. Together they may unpack to
// max(16 MiB, 256 times the bytes of the file) and 4 GiB at most, and rows and columns may be at
// most max(2^20, 16 times the unpacked bytes) and 2^31 - 1; else Error{LimitExceeded}. Numbers
// take at most 8 times the unpacked bytes, plus 16 bytes for each entry.
sparse::Csr<double> read_npz(std::string_view bytes, std::string_view name);

// Returns a file that scipy.sparse.load_npz reads: csr for elements, bsr for blocks. T is float or
// double. Equal matrices give equal bytes.
template <class T>
std::string write_npz(const sparse::Csr<T>& matrix);

}  // namespace tessera::io
