#include "tessera/io/stored_type.hpp"

#include <algorithm>
#include <filesystem>

#include "tessera/base/file.hpp"
#include "tessera/io/internal/npz_file.hpp"

namespace tessera::io {

ElementType stored_type(const std::string& path) {
  constexpr std::string_view kMark = ".safetensors#";
  if (const std::size_t hash = path.rfind(kMark); hash != path.npos) {
    const std::string file = path.substr(0, hash + kMark.size() - 1);
    return read_safetensors(read_file(file), file, path.substr(hash + kMark.size())).type;
  }
  std::string ending = std::filesystem::path(path).extension().string();
  std::ranges::transform(ending, ending.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  if (ending == ".npy") return read_npy(read_file(path), path).type;
  if (ending == ".safetensors") return read_safetensors(read_file(path), path, "").type;
  if (ending == ".npz") return internal::npz_data_type(path);
  return ending == ".mtx" ? ElementType::F64 : ElementType::Bool;
}

}  // namespace tessera::io
