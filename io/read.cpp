#include "tessera/io/read.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/base/input_file.hpp"
#include "tessera/io/array.hpp"
#include "tessera/io/internal/npz_file.hpp"
#include "tessera/io/internal/read_mtx_source.hpp"
#include "tessera/io/internal/smtx_text.hpp"
#include "tessera/io/internal/text.hpp"
#include "tessera/io/internal/text_source.hpp"
#include "tessera/io/read_options.hpp"

namespace tessera::io {
namespace {

constexpr std::string_view kTensorMark = ".safetensors#";

[[noreturn]] void refuse(const std::string& path, std::string_view why) {
  throw Error(ErrorCode::BadInput, fmt::format("{}: {}", path, why));
}

// Returns the whole lines at the start of a file, at most a page. It is empty if the first line is
// longer than that.
std::string first_page(const std::string& path) {
  constexpr std::int64_t kPage = 4096;
  const InputFile file(path);
  std::string page(std::size_t(kPage), '\0');
  page.resize(std::size_t(file.read(0, kPage, page.data())));
  return page.substr(0, page.rfind('\n') + 1);  // npos + 1 is 0
}

// Reads a file whose start is right. The text and the values are not in memory together.
ReadMatrix read_smtx_file(const std::string& path) {
  if (const std::string page = first_page(path); !page.empty())
    internal::check_smtx_start(page, path);
  std::string text = read_file(path);
  ReadMatrix result{internal::read_smtx_places(text, path), false, {}};
  std::string().swap(text);
  result.matrix.values.assign(result.matrix.col.size(), 1.0);
  return result;
}

// Rounds the values to floats and refuses those that are too large for them.
void round_to_floats(sparse::Csr<double>& matrix, const std::string& path) {
  for (std::size_t row = 0; row + 1 < matrix.row_begin.size(); ++row)
    for (std::int64_t i = matrix.row_begin[row]; i < matrix.row_begin[row + 1]; ++i) {
      double& value = matrix.values[std::size_t(i)];
      if (!internal::fits(value, Precision::Float))
        refuse(path, fmt::format("the value in row {}, column {}, counted from 0, is {}; {}", row,
                                 matrix.col[std::size_t(i)], value, internal::kBeyondFloats));
      value = static_cast<float>(value);
    }
}

ReadMatrix read_by_ending(const std::string& path, const ReadOptions& options) {
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
  if (ending == ".smtx") return read_smtx_file(path);
  if (ending == ".mtx") return internal::read_mtx_source(internal::TextOfFile(path), path, options);
  if (ending == ".txt") return read_mask(read_file(path), path);
  if (ending == ".npy") return {to_csr(read_npy(read_file(path), path), path), true, {}};
  if (ending == ".npz") return {internal::read_npz_file(path, options.duplicates), true, {}};
  if (ending == ".safetensors")
    return {to_csr(read_safetensors(read_file(path), path, ""), path), true, {}};
  refuse(path,
         "the file name must end in .smtx (pattern), .mtx (Matrix Market), .npz (SciPy), .npy, "
         ".safetensors (dense) or .txt (a mask of 0 and 1)");
}

}  // namespace

ReadMatrix read_matrix(const std::string& path) { return read_matrix(path, ReadOptions{}); }

ReadMatrix read_matrix(const std::string& path, const ReadOptions& options) {
  ReadMatrix result = read_by_ending(path, options);
  if (options.precision == Precision::Float) round_to_floats(result.matrix, path);
  return result;
}

void require_sizes(const std::string& path, std::int64_t rows, std::int64_t cols) {
  if (rows != 0 && cols != 0) return;
  throw Error(
      ErrorCode::BadInput,
      fmt::format("{}: the matrix is {} x {}; a layer needs at least 1 x 1", path, rows, cols));
}

ReadMatrix read_weights(const std::string& path, const ReadOptions& options) {
  try {
    ReadMatrix file = read_matrix(path, options);
    require_sizes(path, file.matrix.rows, file.matrix.cols);
    return file;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::Internal) throw;
    throw Error(ErrorCode::BadInput, error.what());
  }
}

}  // namespace tessera::io
