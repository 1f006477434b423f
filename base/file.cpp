#include "tessera/base/file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>

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

}  // namespace tessera
