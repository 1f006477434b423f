#include "tessera/base/append_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <tuple>

#include "tessera/base/internal/unfinished_files.hpp"
#include "tessera/base/printable.hpp"
#include "tessera/base/write_file.hpp"

namespace tessera {
namespace {

[[noreturn]] void fail(const std::string& path, std::string_view what, int reason) {
  throw CannotWrite(fmt::format("{}: {}: {}", printable(path), what, std::strerror(reason)));
}

// Returns 0, or the system's reason if not all bytes could be written.
int write_bytes(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return 0;
}

}  // namespace

void append_file(const std::string& path, const std::string& bytes) {
  constexpr mode_t kPermissions = 0666;  // less those that the user's mask takes away
  internal::OpenFile file(
      ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, kPermissions));
  if (!file.is_open()) fail(path, "cannot be opened", errno);
  struct stat before = {};
  if (::fstat(file.get(), &before) != 0) fail(path, "cannot be read", errno);
  const bool is_plain = S_ISREG(before.st_mode);
  if (is_plain) {
    while (::flock(file.get(), LOCK_EX) != 0)
      if (errno != EINTR) fail(path, "cannot be locked", errno);
    if (::fstat(file.get(), &before) != 0) fail(path, "cannot be read", errno);
  }
  if (const int reason = write_bytes(file.get(), bytes)) {
    if (is_plain) std::ignore = ::ftruncate(file.get(), before.st_size);
    fail(path, "cannot be written", reason);
  }
  if (!file.close()) fail(path, "cannot be closed", errno);
}

}  // namespace tessera
