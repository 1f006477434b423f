#include "tessera/base/append_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <tuple>

#include "tessera/base/internal/output_bytes.hpp"
#include "tessera/base/internal/unfinished_files.hpp"

namespace tessera {

void append_file(const std::string& path, const std::string& bytes) {
  constexpr mode_t kPermissions = 0666;  // less those that the user's mask takes away
  internal::OpenFile file(
      ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, kPermissions));
  if (!file.is_open()) internal::throw_cannot_write(path, "cannot be opened", errno);
  struct stat before = {};
  if (::fstat(file.get(), &before) != 0)
    internal::throw_cannot_write(path, "cannot be read", errno);
  const bool is_plain = S_ISREG(before.st_mode);
  if (is_plain) {
    while (::flock(file.get(), LOCK_EX) != 0)
      if (errno != EINTR) internal::throw_cannot_write(path, "cannot be locked", errno);
    if (::fstat(file.get(), &before) != 0)
      internal::throw_cannot_write(path, "cannot be read", errno);
  }
  if (const int reason = internal::write_bytes(file.get(), bytes)) {
    if (is_plain) std::ignore = ::ftruncate(file.get(), before.st_size);
    internal::throw_cannot_write(path, "cannot be written", reason);
  }
  if (!file.close()) internal::throw_cannot_write(path, "cannot be closed", errno);
}

}  // namespace tessera
