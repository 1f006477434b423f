#pragma once

#include <string>

#include "tessera/sparse/formats.hpp"

namespace tessera::io {

// Writers of the text formats of read.hpp. Blocks are written element by element, zeros of a stored
// block included, because the formats have no blocks: reading the text returns
// with_block(matrix, {1, 1}). T is float or double. An illegal matrix is Error{BadInput}. The cost
// is O(values), with the whole text in memory. Any number of threads may write one matrix.

// Returns the pattern of a matrix as .smtx text.
template <class T>
std::string write_smtx(const sparse::Csr<T>& matrix);

// Returns the pattern of blocks as a mask: the numbers of block rows and columns, then a 0 or 1 for
// each block. read_mask() reads it as elements.
std::string write_mask(const sparse::Csr<float>& matrix);

// The field of a Matrix Market file: "coordinate real general" or "coordinate pattern general".
enum class MtxField { Real, Pattern };

// Returns a matrix as Matrix Market text. Values get as many digits as are needed to read the same
// T again, and NaN is written as "nan": reading restores them bit for bit, a float after
// cast<float>.
template <class T>
std::string write_mtx(const sparse::Csr<T>& matrix, MtxField field = MtxField::Real);

// Write the text to a file, as a whole or not at all, with the errors of write_file
// (base/file.hpp).
template <class T>
void write_smtx_file(const std::string& path, const sparse::Csr<T>& matrix);
template <class T>
void write_mtx_file(const std::string& path, const sparse::Csr<T>& matrix,
                    MtxField field = MtxField::Real);

}  // namespace tessera::io
