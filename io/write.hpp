#pragma once

#include <string>

#include "tessera/sparse/formats.hpp"

namespace tessera::io {

// The text of a matrix, in the formats of read.hpp. Blocks are written element by element, zeros of
// a stored block included, because the formats know no blocks: reading gives
// with_block(matrix, {1, 1}) back. T is float or double; an illegal matrix is Error{BadInput}.
// O(values) and the text in memory. Any number of threads may write one matrix.

// The pattern only.
template <class T>
std::string write_smtx(const sparse::Csr<T>& matrix);

// Matrix Market "coordinate real general", or "coordinate pattern general".
enum class MtxField { Real, Pattern };
// Values are written with as many digits as it takes to read the same T again, NaN as NaN: reading
// gives them back bit for bit, a float after cast<float>.
template <class T>
std::string write_mtx(const sparse::Csr<T>& matrix, MtxField field = MtxField::Real);

// Write a file as a whole or not at all, as write_file (base/file.hpp) does.
template <class T>
void write_smtx_file(const std::string& path, const sparse::Csr<T>& matrix);
template <class T>
void write_mtx_file(const std::string& path, const sparse::Csr<T>& matrix,
                    MtxField field = MtxField::Real);

}  // namespace tessera::io
