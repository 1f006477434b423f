#include "tessera/tests/style/rules.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <regex>
#include <string_view>

namespace tessera::style {
namespace {

constexpr std::size_t kMostLines = 500;

bool is_below(std::string_view path, std::string_view folder) {
  return path == folder ||
         (path.starts_with(folder) && path.substr(folder.size()).starts_with('/'));
}

std::string place(const Include& include) {
  return include.file + ":" + std::to_string(include.line) + " includes " + include.target;
}

// "tessera/planner/plan.hpp" becomes "planner/plan.hpp"; the result is empty for foreign headers.
std::string project_path(const Include& include) {
  constexpr std::string_view kPrefix = "tessera/";
  return include.target.starts_with(kPrefix) ? include.target.substr(kPrefix.size())
                                             : std::string();
}

bool is_internal(std::string_view path) { return path.find("/internal/") != path.npos; }

// "planner" becomes "tessera::planner". The names of base/, and those that no
// library owns, are in tessera itself. The libraries of the programs share one namespace, because
// they are parts of one thing that nobody else links.
std::string namespace_of(const std::string& folder) {
  if (folder.empty() || folder == "base" || folder == "tests" || folder == "bench" ||
      folder == "examples")
    return "tessera";
  if (folder.starts_with("tools/")) return "tessera::tools";
  return "tessera::" + folder;
}

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Returns whether `name` occurs in `text` and is not part of a longer file name.
bool names(const std::string& text, const std::string& name) {
  const auto is_part = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
  };
  for (std::size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at == 0 || !is_part(text[at - 1])) && (end == text.size() || !is_part(text[end])))
      return true;
  }
  return false;
}

}  // namespace

std::string owner_of(const std::string& path, const Arrows& arrows) {
  std::string owner;
  for (const auto& [folder, allowed] : arrows)
    if (is_below(path, folder) && folder.size() > owner.size()) owner = folder;
  return owner;
}

Complaints check_arrows(const SourceFile& file, const Arrows& arrows) {
  const std::string from = owner_of(file.path, arrows);
  if (from.empty()) return {file.path + " lies in no folder of the table of arrows"};
  const std::set<std::string>& allowed = arrows.at(from);
  if (allowed.contains(kEverything)) return {};
  Complaints complaints;
  for (const Include& include : includes_of(file)) {
    const std::string target = project_path(include);
    const std::string to = owner_of(target, arrows);
    if (target.empty() || to == from || allowed.contains(to) || allowed.contains(target)) continue;
    complaints.push_back(place(include) + ", which " + from + " may not");
  }
  return complaints;
}

Complaints check_include_form(const SourceFile& file) {
  Complaints complaints;
  for (const Include& include : includes_of(file)) {
    if (include.target.find("..") != std::string::npos)
      complaints.push_back(place(include) + "; write the path from the root: tessera/...");
    else if (include.quoted == project_path(include).empty())
      complaints.push_back(place(include) +
                           "; quotes are for \"tessera/...\", brackets for others");
  }
  return complaints;
}

Complaints check_internal(const SourceFile& file) {
  Complaints complaints;
  if (is_below(file.path, "tests")) return complaints;
  for (const Include& include : includes_of(file)) {
    const std::string target = project_path(include);
    if (!is_internal(target)) continue;
    const std::string owner = target.substr(0, target.find("/internal/"));
    if (!is_below(file.path, owner))
      complaints.push_back(place(include) + ", which is private to " + owner);
  }
  return complaints;
}

Complaints check_foreign(const SourceFile& file) {
  Complaints complaints;
  if (!is_header(file) || is_internal(file.path) || is_below(file.path, "tests")) return complaints;
  for (const Include& include : includes_of(file))
    for (const char* library :
         {"tbb", "oneapi", "boost", "fmt", "nlohmann", "CLI", "hwy", "benchmark", "gtest", "gmock"})
      if (include.target.starts_with(std::string(library) + "/"))
        complaints.push_back(place(include) + "; foreign types stay in .cpp files");
  return complaints;
}

Complaints check_own_header(const SourceFile& file, const std::vector<SourceFile>& files) {
  if (!file.path.ends_with(".cpp") || is_internal(file.path)) return {};
  const std::string own = file.path.substr(0, file.path.rfind('.')) + ".hpp";
  const bool has_own = std::any_of(files.begin(), files.end(),
                                   [&](const SourceFile& other) { return other.path == own; });
  const std::vector<Include> includes = includes_of(file);
  if (!has_own || (!includes.empty() && project_path(includes.front()) == own)) return {};
  return {file.path + " does not include " + own + " first"};
}

Complaints check_pragma_once(const SourceFile& file) {
  const bool found =
      std::find(file.lines.begin(), file.lines.end(), "#pragma once") != file.lines.end();
  if (!is_header(file) || found) return {};
  return {file.path + " has no line #pragma once"};
}

Complaints check_namespaces(const SourceFile& file, const Arrows& arrows) {
  // Opening lines and the comments of closing ones count; `using namespace` and aliases do not.
  static const std::regex kLine(R"(^\s*(\}\s*//\s*)?(inline\s+)?namespace\s+tessera\b(?!\s*;))");
  static const std::regex kInline(R"(\binline\b)");
  const std::string name = namespace_of(owner_of(file.path, arrows));
  const std::regex own("namespace " + name + R"((::\w+)*( \{)?$)");
  Complaints complaints;
  for (std::size_t i = 0; i < file.lines.size(); ++i) {
    const std::string& line = file.lines[i];
    if (!std::regex_search(line, kLine)) continue;
    if (std::regex_search(line, kInline) || !std::regex_search(line, own))
      complaints.push_back(file.path + ":" + std::to_string(i + 1) +
                           ": a folder is a namespace; write namespace " + name);
  }
  return complaints;
}

Complaints check_text_keys(const SourceFile& file) {
  static const std::regex kCompared(
      R"re(\b(phase|term|step)(\.phase|\.name)?(\(\))? *[!=]= *"|" *[!=]= *(phase|term|step)\b)re");
  static const std::regex kBooked(R"re(\bengine_?(\.|->)(exchange|compute|control)\( *")re");
  if (is_below(file.path, "tests")) return {};
  Complaints complaints;
  for (std::size_t i = 0; i < file.lines.size(); ++i)
    if (std::regex_search(file.lines[i], kCompared) || std::regex_search(file.lines[i], kBooked))
      complaints.push_back(file.path + ":" + std::to_string(i + 1) +
                           " uses text as a key; phases and terms are enums");
  return complaints;
}

Complaints check_machine_paths(const SourceFile& file) {
  // The text is split in two, so that this file passes its own rule.
  static const std::string kRoots[] = {
      "/ho"
      "me/",
      "/ro"
      "ot/",
      "/wo"
      "rk/",
      "/Us"
      "ers/",
      "/tm"
      "p/"};
  Complaints complaints;
  for (std::size_t i = 0; i < file.lines.size(); ++i)
    for (const std::string& root : kRoots) {
      const std::string& line = file.lines[i];
      const std::size_t at = line.find(root);
      if (at == std::string::npos) continue;
      // "docs/work/x" is a path of the tree; only an absolute path names a computer.
      const char before = at == 0 ? ' ' : line[at - 1];
      if (std::isalnum(static_cast<unsigned char>(before)) != 0 || before == '_' || before == '.')
        continue;
      complaints.push_back(file.path + ":" + std::to_string(i + 1) + " names the folder " + root);
    }
  return complaints;
}

Complaints check_comment_openings(const SourceFile& file) {
  static const std::regex kFragment(R"(^\s*// (What|Of|How|Where) [^?]*$)");
  static const std::regex kComment(R"(^\s*//)");
  Complaints complaints;
  bool continues = false;
  for (std::size_t i = 0; i < file.lines.size(); ++i) {
    if (!continues && std::regex_search(file.lines[i], kFragment))
      complaints.push_back(file.path + ":" + std::to_string(i + 1) +
                           " begins a comment with a fragment; write a sentence with a subject");
    continues = std::regex_search(file.lines[i], kComment);
  }
  return complaints;
}

Complaints check_length(const std::vector<SourceFile>& files, const LongFiles& exceptions) {
  Complaints complaints;
  std::set<std::string> unused;
  for (const auto& [path, reason] : exceptions) unused.insert(path);
  for (const SourceFile& file : files) {
    if (!is_cpp(file) || file.lines.size() <= kMostLines) continue;
    if (unused.erase(file.path) == 0)
      complaints.push_back(file.path + " has " + std::to_string(file.lines.size()) +
                           " lines; the limit is " + std::to_string(kMostLines));
  }
  for (const std::string& path : unused)
    complaints.push_back(path + " is excepted from the length limit without need");
  return complaints;
}

Complaints check_page(const std::string& folder, const std::vector<SourceFile>& files,
                      const Arrows& arrows) {
  std::string page;
  for (const SourceFile& file : files)
    if (file.path == folder + "/README.md")
      for (const std::string& line : file.lines) page += line + "\n";
  if (page.empty()) return {folder + " has no README.md"};
  Complaints complaints;
  for (const SourceFile& file : files)
    if (is_header(file) && !is_internal(file.path) && owner_of(file.path, arrows) == folder &&
        !names(page, file_name(file.path)))
      complaints.push_back(folder + "/README.md does not name " + file.path);
  return complaints;
}

}  // namespace tessera::style
