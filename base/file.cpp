#include "tessera/base/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "tessera/base/error.hpp"

namespace tessera {
namespace {

[[noreturn]] void refuse(const std::string& path, std::string_view why) {
  throw Error(ErrorCode::BadInput, fmt::format("{}: {}", path, why));
}

// A new file beside `target` that is open for writing. The destructor removes it unless keep() has
// renamed it to `target`.
class NewFile {
 public:
  explicit NewFile(const std::string& target) : target_(target) {
    // A killed run may have left a file with the number of this process in its name.
    for (int attempt = 0; file_ < 0 && attempt < 100; ++attempt) {
      name_ = fmt::format("{}.{}-{}.new", target, ::getpid(), attempt);
      file_ = ::open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (file_ < 0 && errno != EEXIST) break;
    }
    if (file_ < 0) refuse("cannot create a file beside it");
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile() {
    if (file_ >= 0) ::close(file_);
    if (!kept_) ::unlink(name_.c_str());
  }

  void write(const std::string& text) {
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t n = ::write(file_, text.data() + done, text.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) refuse("cannot be written");
      done += static_cast<std::size_t>(n);
    }
  }

  // Renames the file to its target. If the content is forced to disk first, the target is either
  // the old file or the whole new one after a crash of the system.
  void keep(ForceToDisk force) {
    if (force == ForceToDisk::Yes && ::fsync(file_) != 0) refuse("cannot be written to disk");
    const int file = file_;
    file_ = -1;
    if (::close(file) != 0) refuse("cannot be closed");
    if (std::rename(name_.c_str(), target_.c_str()) != 0) refuse("cannot be put in place");
    kept_ = true;
  }

 private:
  [[noreturn]] void refuse(const char* what) const {
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{}: {}: {}", target_, what, std::strerror(errno)));
  }

  std::string target_, name_;
  int file_ = -1;
  bool kept_ = false;
};

}  // namespace

// Only plain files are read: readers compare the sizes that a file declares with its length, which
// a directory or a pipe does not have.
std::string read_file(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) refuse(path, "there is no such file");
  if (std::filesystem::is_directory(status)) refuse(path, "is a directory; name a file in it");
  if (!std::filesystem::is_regular_file(status)) refuse(path, "is not a plain file");
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse(path, fmt::format("cannot be opened: {}", std::strerror(errno)));
  const auto bytes = std::filesystem::file_size(path, error);
  if (error) refuse(path, "its length cannot be found out: " + error.message());
  std::string text(bytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(bytes));
  if (file.bad()) refuse(path, "cannot be read to its end");
  // The file may have been truncated since its length was read.
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

void write_file(const std::string& path, const std::string& bytes, ForceToDisk force) {
  NewFile file(path);
  file.write(bytes);
  file.keep(force);
}

}  // namespace tessera
