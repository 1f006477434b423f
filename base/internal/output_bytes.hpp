#pragma once

#include <string>
#include <string_view>

namespace tessera::internal {

// Returns "PATH: WHAT: REASON" for a reason of the system, errno.
std::string output_fault(const std::string& path, std::string_view what, int reason);

// Throws CannotWrite with that text.
[[noreturn]] void throw_cannot_write(const std::string& path, std::string_view what, int reason);

// Writes all bytes to an open file. Returns 0, or the system's reason if not all could be written.
int write_bytes(int file, std::string_view bytes);

}  // namespace tessera::internal
