#pragma once

#include <string>

namespace tessera {

// Appends bytes to a file as a whole or not at all. The file is created if it does not exist; a
// symbolic link is followed, and a device or a pipe is written to directly. Processes that append
// to one file wait for each other. Throws CannotWrite (write_file.hpp) with the path and the
// system's reason if that fails; a plain file then has its old size.
void append_file(const std::string& path, const std::string& bytes);

}  // namespace tessera
