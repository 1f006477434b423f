#include "tessera/planner/internal/store.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string_view>

#include "tessera/base/error.hpp"

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

[[noreturn]] void refuse(const std::string& path, const char* what) {
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("plan cache: {} {}: {}", path, what, std::strerror(errno)));
}

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

// Creates a file that no other process has open, and sets its name. Returns null if that fails.
std::unique_ptr<std::FILE, Close> open_new(const std::string& path, std::string& name) {
  // An earlier process with the same id may have been killed and have left its file.
  constexpr int kMostAttempts = 1000;
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    name = fmt::format("{}.{}-{}.new", path, ::getpid(), attempt);
    std::unique_ptr<std::FILE, Close> file(std::fopen(name.c_str(), "wxb"));
    if (file != nullptr || errno != EEXIST) return file;
  }
  return nullptr;
}

}  // namespace

void make_store(const std::string& folder) {
  std::error_code reason;
  std::filesystem::create_directories(folder, reason);
  if (std::filesystem::is_directory(folder)) return;
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("plan cache: {} is no folder and cannot be made: {}", folder,
                          reason ? reason.message() : "there is a file of that name"));
}

std::optional<std::string> load(const std::string& folder, const std::string& key) {
  std::ifstream file(store_path(folder, key), std::ios::binary);
  std::ostringstream read;
  read << file.rdbuf();
  if (!file) return std::nullopt;
  const std::string all = std::move(read).str();
  const std::size_t begin = key.size() + 1;
  if (all.size() < begin || std::string_view(all).substr(0, key.size()) != key) return std::nullopt;
  const std::size_t end = all.find('\n', begin);
  if (end == std::string::npos) return std::nullopt;
  std::string text = all.substr(begin, end - begin);
  if (all != file_of(key, text)) return std::nullopt;
  return text;
}

void store(const std::string& folder, const std::string& key, const std::string& text) {
  const std::string path = store_path(folder, key), content = file_of(key, text);
  std::string name;
  auto file = open_new(path, name);
  if (file == nullptr) refuse(name, "cannot be created");
  const bool written = std::fwrite(content.data(), 1, content.size(), file.get()) == content.size();
  const bool closed = std::fclose(file.release()) == 0;
  if (written && closed && std::rename(name.c_str(), path.c_str()) == 0) return;
  const int reason = errno;
  std::remove(name.c_str());
  errno = reason;
  refuse(path, "cannot be written");
}

std::string store_path(const std::string& folder, const std::string& key) {
  return (std::filesystem::path(folder) / fmt::format("{:016x}.plan", hash_of(key))).string();
}

}  // namespace tessera::planner::internal
