#include "tessera/base/internal/unfinished_files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string_view>

#include "tessera/base/write_file.hpp"

namespace tessera {
namespace internal {
namespace {

// A name is ".tessera-", 16 hexadecimal digits and ".new".
constexpr std::string_view kStart = ".tessera-", kEnd = ".new";
constexpr std::size_t kDigits = 16;

// The path of a file that is being written. A handler of a signal may read the table at any time,
// so `is_complete` is set after the path is.
struct Entry {
  std::atomic<bool> is_taken = false, is_complete = false;
  std::array<char, 4096> path{};
};
std::array<Entry, 16> entries;

bool has_the_form(std::string_view name) {
  return name.size() == kStart.size() + kDigits + kEnd.size() && name.starts_with(kStart) &&
         name.ends_with(kEnd);
}

// Removes one file if it belongs to this user and no process holds its lock.
void remove_if_dead(int folder, const char* name) {
  const OpenFile file(::openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status = {};
  if (!file.is_open() || ::fstat(file.get(), &status) != 0) return;
  if (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid()) return;
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) ::unlinkat(folder, name, 0);
}

}  // namespace

OpenFile::~OpenFile() {
  if (file_ >= 0) ::close(file_);
}

bool OpenFile::close() { return ::close(std::exchange(file_, -1)) == 0; }

std::string unfinished_name() {
  std::random_device source;
  const std::uint64_t number = std::uint64_t{source()} << 32 | source();
  return fmt::format("{}{:016x}{}", kStart, number, kEnd);
}

OpenFile create_unfinished(const std::string& path) {
  while (true) {
    OpenFile file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    struct stat status = {};
    // Another process may have taken the file for a remainder before it was locked. File systems
    // without locks have no remainders either, so a lock that fails is no error.
    const bool is_locked = file.is_open() && ::flock(file.get(), LOCK_EX) == 0;
    if (!is_locked || ::fstat(file.get(), &status) != 0 || status.st_nlink > 0) return file;
  }
}

void remove_dead_files(const std::string& folder) {
  const auto close = [](DIR* open) { ::closedir(open); };
  const std::unique_ptr<DIR, decltype(close)> files(::opendir(folder.c_str()), close);
  if (!files) return;
  while (const dirent* file = ::readdir(files.get()))
    if (has_the_form(file->d_name)) remove_if_dead(::dirfd(files.get()), file->d_name);
}

Unfinished::Unfinished(const std::string& path) {
  if (path.size() >= entries[0].path.size()) return;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].is_taken.exchange(true)) continue;
    entry_ = static_cast<int>(i);
    std::memcpy(entries[i].path.data(), path.c_str(), path.size() + 1);
    entries[i].is_complete = true;
    return;
  }
}

Unfinished::~Unfinished() {
  if (entry_ < 0) return;
  Entry& entry = entries[static_cast<std::size_t>(entry_)];
  entry.is_complete = false;
  entry.is_taken = false;
}

}  // namespace internal

void remove_unfinished_files() noexcept {
  for (internal::Entry& entry : internal::entries)
    if (entry.is_complete) ::unlink(entry.path.data());
}

}  // namespace tessera
