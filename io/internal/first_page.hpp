#pragma once

#include <string_view>

namespace tessera::io::internal {

// The checks of the start of a text file, so that a large file of another kind is refused before
// the rest of it is read. `start` are the first bytes of the file and end with a whole line. Each
// throws the error that the reader of the whole file would throw for its first line, and accepts
// all else.
void check_mtx_start(std::string_view start, std::string_view name);
void check_smtx_start(std::string_view start, std::string_view name);

}  // namespace tessera::io::internal
