#include "tessera/base/internal/output_bytes.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tessera/base/printable.hpp"
#include "tessera/base/write_file.hpp"

namespace tessera::internal {

std::string output_fault(const std::string& path, std::string_view what, int reason) {
  return fmt::format("{}: {}: {}", printable(path), what, std::strerror(reason));
}

void throw_cannot_write(const std::string& path, std::string_view what, int reason) {
  throw CannotWrite(output_fault(path, what, reason));
}

int write_bytes(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return 0;
}

}  // namespace tessera::internal
