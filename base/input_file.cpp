#include "tessera/base/input_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "tessera/base/error.hpp"
#include "tessera/base/printable.hpp"

namespace tessera {
namespace {

[[noreturn]] void refuse(const std::string& path, std::string_view why) {
  throw Error(ErrorCode::BadInput, fmt::format("{}: {}", printable(path), why));
}

}  // namespace

// Only plain files are read: readers compare the sizes that a file declares with its length, which
// a directory or a pipe does not have.
InputFile::InputFile(const std::string& path) : path_(path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) refuse(path, "there is no such file");
  if (std::filesystem::is_directory(status)) refuse(path, "is a directory; name a file in it");
  if (!std::filesystem::is_regular_file(status)) refuse(path, "is not a plain file");
  file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file_ < 0) refuse(path, fmt::format("cannot be opened: {}", std::strerror(errno)));
  struct stat opened = {};
  if (::fstat(file_, &opened) != 0) {
    const int reason = errno;
    ::close(file_);
    refuse(path, fmt::format("its length cannot be found out: {}", std::strerror(reason)));
  }
  bytes_ = opened.st_size;
}

InputFile::~InputFile() { ::close(file_); }

std::int64_t InputFile::read(std::int64_t begin, std::int64_t count, char* to) const {
  std::int64_t done = 0;
  while (done < count) {
    const ssize_t now =
        ::pread(file_, to + done, static_cast<std::size_t>(count - done), begin + done);
    if (now < 0 && errno == EINTR) continue;
    if (now < 0) refuse(path_, "cannot be read to its end");
    if (now == 0) break;
    done += now;
  }
  return done;
}

}  // namespace tessera
