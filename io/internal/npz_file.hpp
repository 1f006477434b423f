#pragma once

#include <string>

#include "tessera/io/array.hpp"
#include "tessera/sparse/convert.hpp"

namespace tessera::io::internal {

// Reads as read_npz does, but the archive is not in memory: the arrays are unpacked from the file.
sparse::Csr<double> read_npz_file(const std::string& path, sparse::Duplicates duplicates);

// Returns the type of the values in a file.
ElementType npz_data_type(const std::string& path);

}  // namespace tessera::io::internal
