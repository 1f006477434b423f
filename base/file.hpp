#pragma once

#include <string>

#include "tessera/base/error.hpp"

namespace tessera {

// Returns the content of a plain file. Throws Error{BadInput} "<path>: reason" for a missing file,
// a directory, a pipe or a file that cannot be read. Thread-safe.
std::string read_file(const std::string& path);

// A file declares or has more than its reader takes. Its code is LimitExceeded; programs tell it by
// its type from a request that is too large, because the remedy is another file.
class FileTooLarge : public Error {
 public:
  explicit FileTooLarge(const std::string& message) : Error(ErrorCode::LimitExceeded, message) {}
};

// Throws FileTooLarge for LimitExceeded and Error{code} for other codes.
[[noreturn]] void throw_fault_of_file(ErrorCode code, const std::string& message);

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
