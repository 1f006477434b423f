#pragma once

#include <string>

#include "tessera/base/dims.hpp"
#include "tessera/io/row_file.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::io::internal {

// index_rows and read_rows (row_file.hpp) for .npz files. A compressed array is unpacked from its
// front up to the last entry of the rows, a piece at a time.
RowIndex index_npz(const std::string& path);

template <class T>
sparse::Csr<T> read_npz_rows(const std::string& path, const RowIndex& index, Range rows);

}  // namespace tessera::io::internal
