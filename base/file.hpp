#pragma once

#include <string>

namespace tessera {

// Returns the content of a plain file. Throws Error{BadInput} "<path>: reason" for a missing file,
// a directory, a pipe or a file that cannot be read. Thread-safe.
std::string read_file(const std::string& path);

// Writes a file as a whole or not at all: the bytes go to a new file beside `path`, which is then
// renamed to `path` and replaces a file of that name. Throws Error{InvalidArgument} with the
// system's reason when that fails, and leaves nothing behind. Safe to call from several threads for
// different paths.
void write_file(const std::string& path, const std::string& bytes);

}  // namespace tessera
