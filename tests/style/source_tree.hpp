#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tessera::style {

// One text file of the project.
struct SourceFile {
  std::string path;  // from the root of the tree, with '/'
  std::vector<std::string> lines;
};

// One #include line. Includes of macros do not count.
struct Include {
  std::string file;
  int line = 0;        // counted from 1
  std::string target;  // what stands between the quotes or brackets
  bool quoted = false;
};

SourceFile make_source(std::string path, std::string_view text);

// Returns all C++ sources, pages, CMake files and scripts below `root`, sorted by path. It skips
// build folders, node_modules and hidden folders other than .ci, and follows no links.
std::vector<SourceFile> read_tree(const std::string& root);

std::vector<Include> includes_of(const SourceFile& file);

bool is_header(const SourceFile& file);
bool is_cpp(const SourceFile& file);  // header, source, or a part that sources include

}  // namespace tessera::style
