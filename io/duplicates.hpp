#pragma once

#include <string>
#include <string_view>

#include "tessera/io/read.hpp"
#include "tessera/sparse/convert.hpp"

namespace tessera::io {

// Read as the functions of these names in read.hpp and npz.hpp do, but places that are given twice
// in coordinates (.mtx, and .npz of the format coo) are added up if `duplicates` is Sum. A pattern
// stays a pattern. A symmetric file that has both triangles counts every place twice.
ReadMatrix read_matrix(const std::string& path, sparse::Duplicates duplicates);
ReadMatrix read_mtx(std::string_view text, std::string_view name, sparse::Duplicates duplicates);
sparse::Csr<double> read_npz(std::string_view bytes, std::string_view name,
                             sparse::Duplicates duplicates);

}  // namespace tessera::io
