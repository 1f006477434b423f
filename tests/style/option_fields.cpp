#include "tessera/tests/style/option_fields.hpp"

#include <algorithm>
#include <cstddef>
#include <regex>
#include <set>
#include <string_view>

namespace tessera::style {
namespace {

constexpr std::size_t kLongestGap = 80;  // blanks before what follows a name

struct Statement {
  std::string type;
  std::vector<std::string> names;
};

bool is_product(const std::string& path) {
  return !path.starts_with("tests/") && !path.starts_with("bench/") &&
         !path.starts_with("examples/");
}

// Sources that read options without acting on them.
bool only_handles_options(const std::string& path) {
  return path == "planner/parse_options.cpp" || path == "planner/options.cpp" ||
         path == "planner/internal/plan_fields.hpp" || path.find("json") != path.npos;
}

std::string without_comments(const SourceFile& file) {
  std::string text;
  for (const std::string& line : file.lines) text += line.substr(0, line.find("//")) + "\n";
  return text;
}

// Returns the text without everything between `open` and its `close`.
std::string without_nested(const std::string& text, char open, char close) {
  std::string rest;
  int depth = 0;
  for (const char c : text) {
    depth += c == open;
    if (depth == 0) rest += c;
    depth -= c == close;
  }
  return rest;
}

// The type and names of a declaration; there are no names for functions, friends and the like.
Statement declared(const std::string& statement) {
  static const std::regex kOther(R"(^\s*(friend|static|using|struct|enum|explicit)\b)");
  static const std::regex kLastWord(R"((\w+)\s*$)");
  if (std::regex_search(statement, kOther)) return {};
  const std::string declaration = statement.substr(0, statement.find('='));
  const std::string plain = without_nested(declaration, '<', '>');
  if (plain.find('(') != plain.npos) return {};
  Statement result{declaration, {}};
  for (std::size_t begin = 0; begin <= plain.size();) {
    const std::size_t end = std::min(plain.find(',', begin), plain.size());
    const std::string piece = plain.substr(begin, end - begin);
    std::smatch name;
    if (std::regex_search(piece, name, kLastWord)) result.names.push_back(name[1]);
    begin = end + 1;
  }
  return result;
}

std::vector<Statement> statements_of(const std::string& body) {
  std::vector<Statement> statements;
  const std::string flat = without_nested(body, '{', '}');
  for (std::size_t begin = 0, end; (end = flat.find(';', begin)) != flat.npos; begin = end + 1) {
    Statement statement = declared(flat.substr(begin, end - begin));
    if (!statement.names.empty()) statements.push_back(std::move(statement));
  }
  return statements;
}

// Returns the body of every struct of a header that begins at the start of a line.
std::map<std::string, std::string> structs_of(const SourceFile& file) {
  static const std::regex kStruct(R"(\nstruct (\w+) \{\n([\s\S]*?)\n\};)");
  const std::string text = "\n" + without_comments(file);
  std::map<std::string, std::string> structs;
  for (std::sregex_iterator it(text.begin(), text.end(), kStruct), end; it != end; ++it)
    structs.emplace((*it)[1], (*it)[2]);
  return structs;
}

// Returns whether ".name" or "->name" occurs in the text where it is neither assigned to nor
// called.
bool reads(const std::string& text, const std::string& name) {
  static const std::regex kWritesOrCalls(R"(^\w|^\s*(=[^=]|\())");
  for (std::size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
    const std::string_view before(text.data(), at);
    if (!before.ends_with('.') && !before.ends_with("->")) continue;
    const std::string after = text.substr(at + name.size(), kLongestGap);
    if (!std::regex_search(after, kWritesOrCalls)) return true;
  }
  return false;
}

}  // namespace

std::vector<OptionField> option_fields(const SourceFile& file) {
  std::vector<OptionField> fields;
  if (!is_header(file) || !is_product(file.path) ||
      file.path.find("/internal/") != std::string::npos)
    return fields;
  const auto structs = structs_of(file);
  std::vector<std::string> owners;
  for (const auto& [name, body] : structs)
    if (name.ends_with("Options")) owners.push_back(name);
  for (std::size_t i = 0; i < owners.size(); ++i)
    for (const Statement& statement : statements_of(structs.at(owners[i]))) {
      for (const std::string& name : statement.names)
        fields.push_back({file.path, owners[i], name});
      for (const auto& [name, body] : structs)
        if (std::regex_search(statement.type, std::regex("\\b" + name + "\\b")) &&
            std::find(owners.begin(), owners.end(), name) == owners.end())
          owners.push_back(name);
    }
  return fields;
}

Complaints check_options_read(const std::vector<SourceFile>& files,
                              const UnreadFields& exceptions) {
  std::vector<std::string> readers;
  for (const SourceFile& file : files)
    if (is_cpp(file) && is_product(file.path) && !only_handles_options(file.path))
      readers.push_back(without_comments(file));
  Complaints complaints;
  std::set<std::string> unused;
  for (const auto& [name, reason] : exceptions) unused.insert(name);
  for (const SourceFile& file : files)
    for (const OptionField& field : option_fields(file)) {
      const bool read = std::any_of(readers.begin(), readers.end(), [&](const std::string& text) {
        return reads(text, field.name);
      });
      if (read || unused.erase(field.full_name()) > 0) continue;
      complaints.push_back(field.file + ": no source reads " + field.full_name() +
                           "; act on it, or refuse it where options are parsed");
    }
  for (const std::string& name : unused)
    complaints.push_back(name + " is excepted from being read without need");
  return complaints;
}

}  // namespace tessera::style
