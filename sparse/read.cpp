#include "tessera/sparse/read.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tessera/base/error.hpp"
#include "tessera/sparse/array.hpp"
#include "tessera/sparse/npz.hpp"

namespace tessera::inline v0::sparse {
namespace {

constexpr std::string_view kTensorMark = ".safetensors#";

[[noreturn]] void refuse(const std::string& path, std::string_view why) {
  throw Error(ErrorCode::BadInput, fmt::format("{}: {}", path, why));
}

// The whole file. Only plain files: a directory or a pipe has no length to hold declarations to.
std::string file_bytes(const std::string& path) {
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
  text.resize(static_cast<std::size_t>(file.gcount()));  // it may have been cut meanwhile
  return text;
}

}  // namespace

std::string read_file(const std::string& path) { return file_bytes(path); }

ReadMatrix read_matrix(const std::string& path) {
  const std::string_view whole = path;
  const std::size_t hash = whole.rfind(kTensorMark);
  if (hash != whole.npos) {
    const std::size_t end = hash + kTensorMark.size();
    const std::string file(whole.substr(0, end - 1));
    return {to_csr(read_safetensors(read_file(file), file, whole.substr(end)), path), true};
  }
  std::string ending = std::filesystem::path(path).extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  if (ending == ".smtx") return read_smtx(read_file(path), path);
  if (ending == ".mtx") return read_mtx(read_file(path), path);
  if (ending == ".txt") return read_mask(read_file(path), path);
  if (ending == ".npy") return {to_csr(read_npy(read_file(path), path), path), true};
  if (ending == ".npz") return {read_npz(read_file(path), path), true};
  if (ending == ".safetensors")
    return {to_csr(read_safetensors(read_file(path), path, ""), path), true};
  refuse(path,
         "the ending of its name must be .smtx (pattern), .mtx (Matrix Market), .npz (SciPy), "
         ".npy, .safetensors (dense) or .txt (a mask of 0 and 1)");
}

}  // namespace tessera::inline v0::sparse
