#include "tessera/tests/style/source_tree.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

namespace tessera::style {
namespace {

namespace fs = std::filesystem;

bool is_skipped_folder(const std::string& name) {
  const bool hidden = name.front() == '.' && name != ".ci";
  return hidden || name == "build" || name.starts_with("build-") || name == "node_modules";
}

bool is_read(const fs::path& path) {
  static const std::set<std::string> kEndings = {".cpp", ".hpp",   ".h",   ".inl",  ".md", ".txt",
                                                 ".py",  ".cmake", ".yml", ".html", ".sh"};
  return kEndings.contains(path.extension().string()) || path.filename() == "dev" ||
         path.parent_path().filename() == ".ci" || path.filename() == "CMakePresets.json";
}

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string_view without_leading_blanks(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin);
}

// Returns the text that follows `word` if `text` starts with it, apart from blanks; else nothing.
std::string_view behind(std::string_view text, std::string_view word) {
  text = without_leading_blanks(text);
  return text.starts_with(word) ? without_leading_blanks(text.substr(word.size()))
                                : std::string_view();
}

}  // namespace

SourceFile make_source(std::string path, std::string_view text) {
  SourceFile file{std::move(path), {}};
  std::istringstream stream{std::string(text)};
  for (std::string line; std::getline(stream, line);) file.lines.push_back(line);
  return file;
}

std::vector<SourceFile> read_tree(const std::string& root) {
  std::vector<SourceFile> files;
  for (fs::recursive_directory_iterator it(root), end; it != end; ++it) {
    if (it->is_directory()) {
      if (is_skipped_folder(it->path().filename().string())) it.disable_recursion_pending();
    } else if (it->is_regular_file() && is_read(it->path())) {
      const std::string path = it->path().lexically_relative(root).generic_string();
      files.push_back(make_source(path, read_text(it->path())));
    }
  }
  std::sort(files.begin(), files.end(),
            [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  return files;
}

std::vector<Include> includes_of(const SourceFile& file) {
  std::vector<Include> includes;
  int number = 0;
  for (const std::string& line : file.lines) {
    ++number;
    const std::string_view target = behind(behind(line, "#"), "include");
    if (target.empty() || (target.front() != '"' && target.front() != '<')) continue;
    const bool quoted = target.front() == '"';
    const std::size_t close = target.find(quoted ? '"' : '>', 1);
    if (close == std::string_view::npos) continue;
    includes.push_back({file.path, number, std::string(target.substr(1, close - 1)), quoted});
  }
  return includes;
}

bool is_header(const SourceFile& file) {
  return file.path.ends_with(".hpp") || file.path.ends_with(".h");
}
bool is_cpp(const SourceFile& file) {
  return is_header(file) || file.path.ends_with(".cpp") || file.path.ends_with(".inl");
}

}  // namespace tessera::style
