#include "tessera/tests/style/header_users.hpp"

#include <algorithm>
#include <regex>
#include <sstream>

namespace tessera::style {
namespace {

std::string folder_of(const std::string& path) {
  const std::size_t end = path.rfind('/');
  return end == path.npos ? std::string() : path.substr(0, end);
}

std::string without_ending(const std::string& path) { return path.substr(0, path.rfind('.')); }

// The source of "planner/internal/search.hpp" is that file with .cpp, or "planner/search.cpp".
std::vector<std::string> sources_of(const std::string& header) {
  const std::string stem = without_ending(header);
  std::vector<std::string> names = {stem + ".cpp"};
  const std::size_t internal = stem.rfind("internal/");
  if (internal != stem.npos)
    names.push_back(stem.substr(0, internal) + stem.substr(internal + 9) + ".cpp");
  return names;
}

std::string text_of(const SourceFile& file) {
  std::string text;
  for (const std::string& line : file.lines) text += line.substr(0, line.find('#')) + "\n";
  return text;
}

// Returns the words of the list that follows `keyword`, up to the next keyword of tessera_module.
std::vector<std::string> words_after(const std::string& keyword, const std::string& arguments) {
  std::vector<std::string> words;
  bool is_in = false;
  std::istringstream stream(arguments);
  for (std::string word; stream >> word;) {
    if (word == "HEADERS" || word == "SOURCES" || word == "USES" || word == "PRIVATE")
      is_in = word == keyword;
    else if (is_in)
      words.push_back(word);
  }
  return words;
}

using Variables = std::map<std::string, std::string>;  // "${name}" and its words

std::string expanded(std::string text, const Variables& variables) {
  for (const auto& [name, words] : variables)
    for (std::size_t at = text.find(name); at != text.npos; at = text.find(name, at))
      text.replace(at, name.size(), words);
  return text;
}

std::string name_of(const std::string& path) {
  const std::string stem = without_ending(path);
  return stem.substr(stem.rfind('/') + 1);
}

// The files of internal/ belong to the folder above it.
std::string owner_folder_of(const std::string& path) {
  const std::string folder = folder_of(path);
  return folder.ends_with("/internal") ? folder_of(folder) : folder;
}

class Tree {
 public:
  explicit Tree(const std::vector<SourceFile>& files) {
    for (const SourceFile& file : files)
      if (is_cpp(file)) files_[file.path] = &file;
    for (const auto& [path, file] : files_)
      if (is_part(path))
        for (const std::string& header : headers_of_part(path)) parts_[header].push_back(path);
  }

  bool has(const std::string& path) const { return files_.contains(path); }

  std::vector<std::string> next_to(const std::string& path) const {
    std::vector<std::string> next = includes_in(path);
    if (!is_header(*files_.at(path))) return next;
    const auto append = [&](const std::vector<std::string>& more) {
      next.insert(next.end(), more.begin(), more.end());
    };
    append(sources_of(path));
    if (const auto parts = parts_.find(path); parts != parts_.end()) append(parts->second);
    return next;
  }

 private:
  std::vector<std::string> includes_in(const std::string& path) const {
    std::vector<std::string> targets;
    for (const Include& include : includes_of(*files_.at(path)))
      if (include.target.starts_with("tessera/")) targets.push_back(include.target.substr(8));
    return targets;
  }
  // A source without a header of its own name implements a part of others.
  bool is_part(const std::string& path) const {
    return path.ends_with(".cpp") && !has(without_ending(path) + ".hpp") &&
           !has(folder_of(path) + "/internal/" + name_of(path) + ".hpp");
  }
  bool has_source(const std::string& header) const {
    return std::ranges::any_of(sources_of(header),
                               [&](const std::string& source) { return has(source); });
  }
  // "blas_parallel.cpp" is a part of "blas.hpp". A source whose name says nothing is one of the
  // public headers that have no source of their own, or else of any header of its folder.
  std::vector<std::string> headers_of_part(const std::string& path) const {
    std::vector<std::string> all, named, without_source;
    for (const std::string& header : includes_in(path)) {
      if (owner_folder_of(header) != owner_folder_of(path)) continue;
      all.push_back(header);
      if (name_of(path).starts_with(name_of(header) + "_")) named.push_back(header);
      if (header.find("/internal/") == header.npos && !has_source(header))
        without_source.push_back(header);
    }
    return !named.empty() ? named : !without_source.empty() ? without_source : all;
  }

  std::map<std::string, const SourceFile*> files_;
  std::map<std::string, std::vector<std::string>> parts_;  // by header
};

}  // namespace

std::set<std::string> public_headers(const std::vector<SourceFile>& files) {
  static const std::regex kSet(R"(\bset\((\w+)([^)]*)\))"),
      kModule(R"(\btessera_module\(([^)]*)\))");
  std::set<std::string> headers;
  for (const SourceFile& file : files) {
    // Benchmarks are programs of their own, and nobody installs their libraries.
    if (!file.path.ends_with("/CMakeLists.txt") || file.path.starts_with("bench/")) continue;
    const std::string text = text_of(file);
    Variables variables;
    for (std::sregex_iterator set(text.begin(), text.end(), kSet), end; set != end; ++set)
      variables["${" + (*set)[1].str() + "}"] = (*set)[2];
    for (std::sregex_iterator module(text.begin(), text.end(), kModule), end; module != end;
         ++module)
      for (const std::string& header : words_after("HEADERS", expanded((*module)[1], variables)))
        headers.insert(folder_of(file.path) + "/" + header);
  }
  return headers;
}

std::set<std::string> programs(const std::vector<SourceFile>& files) {
  static const std::regex kListed(R"(`([\w/]+\.[ch]pp)`)");
  std::set<std::string> found;
  for (const SourceFile& file : files) {
    if (is_cpp(file) && (file.path.starts_with("tools/") || file.path.starts_with("python/src/")))
      found.insert(file.path);
    if (file.path != "examples/README.md") continue;
    for (const std::string& line : file.lines) {
      if (!line.starts_with("|")) continue;
      const std::string names = line.substr(0, line.find('|', 1));
      for (std::sregex_iterator name(names.begin(), names.end(), kListed), end; name != end; ++name)
        found.insert("examples/" + (*name)[1].str());
    }
  }
  return found;
}

std::set<std::string> reached_from(const std::set<std::string>& roots,
                                   const std::vector<SourceFile>& files) {
  const Tree tree(files);
  std::set<std::string> reached;
  std::vector<std::string> open(roots.begin(), roots.end());
  while (!open.empty()) {
    const std::string path = open.back();
    open.pop_back();
    if (!tree.has(path) || !reached.insert(path).second) continue;
    for (const std::string& next : tree.next_to(path)) open.push_back(next);
  }
  return reached;
}

Complaints check_headers_used(const std::vector<SourceFile>& files,
                              const UnusedHeaders& exceptions) {
  const std::set<std::string> reached = reached_from(programs(files), files);
  const std::set<std::string> headers = public_headers(files);
  Complaints complaints;
  for (const std::string& header : headers)
    if (!reached.contains(header) && !exceptions.contains(header))
      complaints.push_back(header +
                           " is used by no command, no Python function and no listed example");
  for (const auto& [header, reason] : exceptions)
    if (!headers.contains(header) || reached.contains(header) || reason.empty())
      complaints.push_back(header + " is excepted from the rule of users without need or reason");
  return complaints;
}

}  // namespace tessera::style
