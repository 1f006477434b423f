#pragma once

#include <string>

#include "tessera/sparse/formats.hpp"

namespace tessera::inline v0::sparse {

// The text of a matrix, in the formats of read.hpp. Blocks are written element by element, zeros of
// a stored block included, because the formats know no blocks: reading gives
// with_block(matrix, {1, 1}) back. T is float or double; an illegal matrix is Error{BadInput}.
// O(values) and the text in memory. Any number of threads may write one matrix.

// The pattern only.
template <class T>
std::string write_smtx(const Csr<T>& matrix);

// Matrix Market "coordinate real general", or "coordinate pattern general".
enum class MtxField { Real, Pattern };
// Values are written with as many digits as it takes to read the same T again, NaN as NaN: reading
// gives them back bit for bit, a float after cast<float>.
template <class T>
std::string write_mtx(const Csr<T>& matrix, MtxField field = MtxField::Real);

// Into a file as a whole or not at all: the bytes go to a new file beside `path` which is
// renamed to `path` at the end, over a file that was there. Error{InvalidArgument} with the
// system's reason when that fails; nothing is left behind then. Two threads may not write one path.
void write_file(const std::string& path, const std::string& bytes);
template <class T>
void write_smtx_file(const std::string& path, const Csr<T>& matrix);
template <class T>
void write_mtx_file(const std::string& path, const Csr<T>& matrix, MtxField field = MtxField::Real);

}  // namespace tessera::inline v0::sparse
