#pragma once

#include <string_view>

#include "tessera/sparse/formats.hpp"

namespace tessera::io::internal {

// Checks the start of a text file, so that a large file of another kind is refused before the rest
// of it is read. `start` are the first bytes of the file and end with a whole line. Throws the
// error that the reader of the whole file would throw for its first line, and accepts all else.
void check_smtx_start(std::string_view start, std::string_view name);

// Reads as read_smtx does, but the matrix has no values yet: a caller may free the text first.
sparse::Csr<double> read_smtx_places(std::string_view text, std::string_view name);

}  // namespace tessera::io::internal
