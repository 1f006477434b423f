#include "tessera/planner/internal/store.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/base/write_file.hpp"

namespace tessera::planner::internal {
namespace {

// Returns the 64-bit FNV-1a hash, which is the same on every computer, unlike std::hash.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

std::string file_of(const std::string& key, const std::string& text) {
  const std::string lines = key + "\n" + text + "\n";
  return fmt::format("{}{:016x}\n", lines, hash_of(lines));
}

}  // namespace

void make_store(const std::string& folder) {
  std::error_code reason;
  std::filesystem::create_directories(folder, reason);
  std::error_code unknown;  // the reason of the first call is told
  if (std::filesystem::is_directory(folder, unknown)) return;
  throw_invalid(fmt::format("plan cache: {} is no folder and cannot be made: {}", folder,
                            reason ? reason.message() : "there is a file of that name"));
}

std::optional<std::string> load(const std::string& folder, const std::string& key) {
  const std::string path = store_path(folder, key);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  std::string all;
  try {
    all = read_file(path);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::BadInput) throw;
    return std::nullopt;
  }
  const std::size_t begin = key.size() + 1;
  if (all.size() < begin || std::string_view(all).substr(0, key.size()) != key) return std::nullopt;
  const std::size_t end = all.find('\n', begin);
  if (end == std::string::npos) return std::nullopt;
  std::string text = all.substr(begin, end - begin);
  if (all != file_of(key, text)) return std::nullopt;
  return text;
}

void store(const std::string& folder, const std::string& key, const std::string& text) {
  try {
    write_file(store_path(folder, key), file_of(key, text), ForceToDisk::No);
  } catch (const CannotWrite& error) {
    throw CannotWrite(fmt::format("plan cache: {}", error.what()));
  }
}

std::string store_path(const std::string& folder, const std::string& key) {
  return (std::filesystem::path(folder) / fmt::format("{:016x}.plan", hash_of(key))).string();
}

}  // namespace tessera::planner::internal
