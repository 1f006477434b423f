#pragma once

#include <string>

namespace tessera {

// Returns the content of a plain file. Throws Error{BadInput} "<path>: reason" for a missing file,
// a directory, a pipe or a file that cannot be read. Thread-safe.
std::string read_file(const std::string& path);

// Yes: a new file is on disk before it gets its name. No: a crash of the system may leave a short
// file of that name, which is good enough for readers that detect it and can do without the file.
enum class ForceToDisk { Yes, No };

// Writes a file as a whole or not at all: the bytes are written to a new file beside `path`, which
// is then renamed to `path` and replaces a file of that name. Throws Error{InvalidArgument} with
// the system's reason if that fails; the new file is then removed. Several threads may call it at
// the same time for different paths.
void write_file(const std::string& path, const std::string& bytes,
                ForceToDisk force = ForceToDisk::Yes);

}  // namespace tessera
