#pragma once

#include <string>
#include <string_view>

#include "tessera/sparse/formats.hpp"

namespace tessera::io {

// SciPy's save_npz files: a zip archive of arrays (array.hpp) named format, shape, data and
//   csr, csc  indices, indptr          bsr  the same, data [blocks][rows][cols]
//   coo       row, col, or coords      (dia is refused)
// Needs the library to be built with libzip (can_read_npz); else reading and writing are
// Error{InvalidArgument} that says so.
bool can_read_npz();

// As an element matrix; the blocks of a bsr are given whole, zeros included. Rows and columns in
// any order; a place given twice is refused. Error{BadInput} "<name>: <array>: ..." names the array
// and the entry. Nothing is unpickled. Arrays are unpacked as their bytes come, at most 4 GiB in
// all and 1100 times their packed length (more than deflate can reach), else Error{LimitExceeded};
// rows and columns may be at most max(2^20, 16 times the unpacked bytes).
sparse::Csr<double> read_npz(std::string_view bytes, std::string_view name);

// What scipy.sparse.load_npz reads: csr for elements, bsr for blocks. T is float or double. The
// same matrix gives the same bytes.
template <class T>
std::string write_npz(const sparse::Csr<T>& matrix);

}  // namespace tessera::io
