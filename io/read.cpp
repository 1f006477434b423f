#include "tessera/io/read.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/io/array.hpp"
#include "tessera/io/duplicates.hpp"
#include "tessera/io/internal/first_page.hpp"
#include "tessera/io/npz.hpp"

namespace tessera::io {
namespace {

constexpr std::string_view kTensorMark = ".safetensors#";

[[noreturn]] void refuse(const std::string& path, std::string_view why) {
  throw Error(ErrorCode::BadInput, fmt::format("{}: {}", path, why));
}

// Returns the whole lines at the start of a file, at most a page. It is empty if the first line is
// longer than that, or if the file cannot be read, which read_file() reports.
std::string first_page(const std::string& path) {
  constexpr std::streamsize kPage = 4096;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return {};
  std::ifstream file(path, std::ios::binary);
  std::string page(std::size_t(kPage), '\0');
  file.read(page.data(), kPage);
  page.resize(std::size_t(file.gcount()));
  return page.substr(0, page.rfind('\n') + 1);  // npos + 1 is 0
}

// Reads a text whose start is right.
std::string read_text(const std::string& path,
                      void (*check_start)(std::string_view start, std::string_view name)) {
  if (const std::string page = first_page(path); !page.empty()) check_start(page, path);
  return read_file(path);
}

}  // namespace

ReadMatrix read_matrix(const std::string& path) {
  return read_matrix(path, sparse::Duplicates::Refuse);
}

ReadMatrix read_matrix(const std::string& path, sparse::Duplicates duplicates) {
  const std::string_view whole = path;
  const std::size_t hash = whole.rfind(kTensorMark);
  if (hash != whole.npos) {
    const std::size_t end = hash + kTensorMark.size();
    const std::string file(whole.substr(0, end - 1));
    return {to_csr(read_safetensors(read_file(file), file, whole.substr(end)), path), true, {}};
  }
  std::string ending = std::filesystem::path(path).extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  if (ending == ".smtx") return read_smtx(read_text(path, internal::check_smtx_start), path);
  if (ending == ".mtx")
    return read_mtx(read_text(path, internal::check_mtx_start), path, duplicates);
  if (ending == ".txt") return read_mask(read_file(path), path);
  if (ending == ".npy") return {to_csr(read_npy(read_file(path), path), path), true, {}};
  if (ending == ".npz") return {read_npz(read_file(path), path, duplicates), true, {}};
  if (ending == ".safetensors")
    return {to_csr(read_safetensors(read_file(path), path, ""), path), true, {}};
  refuse(path,
         "the file name must end in .smtx (pattern), .mtx (Matrix Market), .npz (SciPy), .npy, "
         ".safetensors (dense) or .txt (a mask of 0 and 1)");
}

}  // namespace tessera::io
