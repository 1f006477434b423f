#include "tessera/tools/options/command_line.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <numeric>
#include <sstream>

#include "tessera/base/error.hpp"
#include "tessera/base/version.hpp"
#include "tessera/base/wrapped.hpp"
#include "tessera/tools/internal/choices.hpp"
#include "tessera/tools/options/exit_code.hpp"
#include "tessera/tools/options/help_format.hpp"
#include "tessera/tools/options/inputs.hpp"
#include "tessera/tools/options/manual.hpp"
#include "tessera/tools/options/paths.hpp"

namespace tessera::tools {
namespace {

constexpr int kDeepestFile = 8;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 26;  // of all option files together
const char* const kEmptyValue = "the value is empty; give a value or omit the option";

[[noreturn]] void throw_too_many_words(const std::string& name) {
  throw Error(ErrorCode::BadInput,
              fmt::format("{}: a command line may have at most {} words, those of option files "
                          "included; write fewer, or several commands",
                          name, kMostWords));
}

// Splits the text of an @FILE into words.
class FileWords {
 public:
  FileWords(const std::string& text, const std::string& name) : text_(text), name_(name) {}

  std::vector<std::string> all() {
    for (; at_ < text_.size(); ++at_) take(text_[at_]);
    if (quote_ != 0)
      throw Error(ErrorCode::BadInput, fmt::format("{}: a quote {} is not closed", name_, quote_));
    end_word();
    return std::move(words_);
  }

 private:
  void take(char c) {
    const bool is_space = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    if (c == '\\' && quote_ != '\'' && at_ + 1 < text_.size()) {
      add(text_[++at_]);
    } else if (quote_ != 0) {
      c == quote_ ? void(quote_ = 0) : add(c);
    } else if (c == '"' || c == '\'') {
      quote_ = c, inside_ = true;
    } else if (c == '#' && !inside_) {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else {
      is_space ? end_word() : add(c);
    }
  }
  void add(char c) { word_ += c, inside_ = true; }
  void end_word() {
    if (inside_) words_.push_back(std::move(word_));
    if (std::ssize(words_) > kMostWords) throw_too_many_words(name_);
    word_.clear();
    inside_ = false;
  }

  const std::string& text_;
  const std::string& name_;
  std::size_t at_ = 0;
  char quote_ = 0;
  bool inside_ = false;
  std::string word_;
  std::vector<std::string> words_;
};

std::vector<std::string> long_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back(name);
  return names;
}

// Returns the only long option that begins with `start`, or `start` itself if it is an option or
// the start of none.
std::string full_name(const CLI::App& app, const std::string& start) {
  std::vector<std::string> candidates;
  for (const std::string& name : long_names(app)) {
    if (name == start) return start;
    if (name.rfind(start, 0) == 0) candidates.push_back(name);
  }
  if (candidates.empty()) return start;
  if (candidates.size() == 1) return candidates[0];
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("--{} is ambiguous: it could be --{}; write more of the name", start,
                          fmt::join(candidates, " or --")));
}

class Expander {
 public:
  explicit Expander(const CLI::App& app) : app_(&app) {}

  void add(const std::vector<std::string>& more, int depth) {
    for (const std::string& word : more) add(word, depth);
  }
  std::vector<std::string> words;

 private:
  void add(const std::string& word, int depth) {
    if (is_over_ || is_value_) {
      is_value_ = false;
      words.push_back(word);
    } else if (word == "--") {
      is_over_ = true;
      words.push_back(word);
    } else if (word.size() > 1 && word[0] == '@') {
      add_file(word.substr(1), depth);
    } else if (word.rfind("--", 0) == 0) {
      add_option(word);
    } else {
      if (const CLI::App* command = sub_command(word)) app_ = command;
      words.push_back(word);
      is_value_ = word.size() == 2 && word[0] == '-' && takes_value(word);
    }
  }
  void add_file(const std::string& path, int depth) {
    if (depth == kDeepestFile)
      throw Error(ErrorCode::BadInput,
                  fmt::format("{}: option files may include other files at most {} levels deep",
                              path, kDeepestFile));
    const std::string text = load_text(path);
    if ((bytes_ += std::ssize(text)) > kMostBytes)
      throw Error(
          ErrorCode::BadInput,
          fmt::format("{}: option files may have at most {} bytes together", path, kMostBytes));
    // A file that names itself or others many times is counted by its names, not by its words.
    if (++files_ > kMostWords) throw_too_many_words(path);
    add(split_words(text, path), depth + 1);
    if (std::ssize(words) > kMostWords) throw_too_many_words(path);
  }
  void add_option(const std::string& word) {
    const std::size_t equals = std::min(word.find('='), word.size());
    if (equals == 2)
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("\"{}\" has no name of an option before the \"=\"", word));
    const std::string name = "--" + full_name(*app_, word.substr(2, equals - 2));
    // CLI11 would take the next word for the value.
    if (equals + 1 == word.size() && takes_value(name))
      throw Error(ErrorCode::InvalidArgument, fmt::format("{}: {}", name, kEmptyValue));
    words.push_back(name + word.substr(equals));
    is_value_ = equals == word.size() && takes_value(name);
  }
  bool takes_value(const std::string& name) const {
    const CLI::Option* option = app_->get_option_no_throw(name);
    return option != nullptr && option->get_items_expected_min() > 0;
  }
  const CLI::App* sub_command(const std::string& name) const {
    const auto found =
        app_->get_subcommands([&](const CLI::App* app) { return app->get_name() == name; });
    return found.empty() ? nullptr : found[0];
  }

  const CLI::App* app_;
  bool is_over_ = false, is_value_ = false;
  std::int64_t bytes_ = 0, files_ = 0;  // of option files so far
};

// Returns the number of letters to insert, delete or change between two names.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, changed}));
    }
  }
  return row.back();
}

// Returns the name that is nearest to a word, or no value if none is near.
std::optional<std::string> nearest_of(const std::vector<std::string>& names,
                                      const std::string& word) {
  const auto nearest = std::ranges::min_element(
      names, {}, [&](const std::string& name) { return distance(name, word); });
  if (nearest == names.end() || distance(*nearest, word) > 1 + word.size() / 3) return std::nullopt;
  return *nearest;
}

// Returns the nearest command, and all commands, for a command line that begins with another word.
std::string command_hint(const CLI::App& app, const std::vector<std::string>& words) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  if (names.empty() || words.empty() || words[0].starts_with("-")) return {};
  std::string text = fmt::format("there is no command \"{}\"\n", words[0]);
  if (words[0] == "help")
    text += fmt::format("hint: {0} --help, {0} COMMAND --help\n", app.get_name());
  if (const auto nearest = nearest_of(names, words[0]))
    text += fmt::format("hint: did you mean {}?\n", *nearest);
  return text + fmt::format("commands: {}\n", fmt::join(names, ", "));
}

// Returns "hint: ..." for the first unknown option on the command line; empty if there is none.
std::string hint(const CLI::App& app, const std::vector<std::string>& words) {
  const auto used = app.get_subcommands();
  const std::vector<std::string> names = long_names(used.empty() ? app : *used[0]);
  for (const std::string& word : words) {
    if (word.rfind("--", 0) != 0 || word.size() == 2) continue;
    const std::string name = word.substr(2, word.find('=') - 2);
    if (names.empty() || std::find(names.begin(), names.end(), name) != names.end()) continue;
    if (const auto nearest = nearest_of(names, name))
      return fmt::format("hint: did you mean --{}?\n", *nearest);
  }
  return {};
}

}  // namespace

std::vector<std::string> split_words(const std::string& text, const std::string& name) {
  return FileWords(text, name).all();
}

std::vector<std::string> expand_words(const CLI::App& app, const std::vector<std::string>& words) {
  Expander expander(app);
  expander.add(words, 0);
  return std::move(expander.words);
}

std::optional<int> parse_command_line(CLI::App& app, int argc, const char* const* argv) {
  app.set_version_flag("--version", "tessera " TESSERA_VERSION, "print the version and exit");
  add_help_all(app);
  if (argc == 3 && std::string_view(argv[1]) == "--generate")
    if (const auto page = generated_page(app, app.get_name(), argv[2])) {
      print_results(*page);
      return kOk;
    }
  std::vector<std::string> words = expand_words(app, {argv + 1, argv + argc});
  const auto options_end = std::ranges::find(words, "--");
  const bool shows_all = std::find(words.begin(), options_end, "--help-all") != options_end;
  format_help(app);
  std::replace(words.begin(), options_end, std::string("--help-all"), std::string("--help"));
  const std::vector<std::string> kept = words;
  std::reverse(words.begin(), words.end());  // CLI11 reads them from the back
  try {
    app.parse(std::move(words));
    refuse_empty_values(app);
    check_paths(app, {argv + 1, argv + argc});
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    std::ostringstream help, complaint;
    if (error.get_name() == "CallForHelp" && !shows_all) hide_rare_options(app);
    const int exit = app.exit(error, help, complaint) == 0 ? kOk : kUsage;
    const std::string unknown = app.get_subcommands().empty() ? command_hint(app, kept) : "";
    if (exit != kOk)
      print_message(fmt::format("{}: {}", app.get_name(),
                                unknown.empty() ? complaint.str() + hint(app, kept) : unknown));
    print_results(exit == kOk ? wrapped(help.str(), kDescriptions, 0) : help.str());
    return exit;
  }
}

void refuse_empty_values(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options())
    for (const std::string& value : option->results())
      if (value.empty()) throw CLI::ValidationError(option->get_name(), kEmptyValue);
  for (const CLI::App* command : app.get_subcommands()) refuse_empty_values(*command);
}

void add_config_option(CLI::App& app) {
  // CLI11 would read a device without end.
  const auto check = [](std::string& path) {
    try {
      if (!path.empty()) load_text(path);
      return std::string();
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  app.set_config("--config", "",
                 "file of options, one \"name = value\" per line; the command line overrides it")
      ->type_name("FILE")
      ->check(CLI::Validator(check, ""));
  app.allow_config_extras(CLI::config_extras_mode::error);
}

std::optional<std::pair<std::int64_t, std::int64_t>> parse_pair(std::string text) {
  if (text.size() >= 2 && text.front() == '{' && text.back() == '}')
    text = text.substr(1, text.size() - 2);
  const auto number = [](std::string_view part) -> std::optional<std::int64_t> {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (error != std::errc{} || end != part.data() + part.size() || value < 0) return std::nullopt;
    return value;
  };
  const std::size_t comma = text.find(',');
  const auto first = number(std::string_view(text).substr(0, comma));
  const auto second = comma == text.npos ? first : number(std::string_view(text).substr(comma + 1));
  if (!first || !second) return std::nullopt;
  return std::pair{*first, *second};
}

std::vector<std::pair<std::string, std::string>> effective_configuration(const CLI::App& app) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_lnames().empty() || !option->get_configurable()) continue;
    const bool is_flag = option->get_items_expected_min() == 0;
    const std::string unset = is_flag ? "false" : option->get_default_str();
    std::string value = fmt::format("{}", fmt::join(option->results(), " "));
    const auto& names = names_of_values(option);
    if (const auto name = names.find(value); name != names.end()) value = name->second;
    if (option->count() > 0 || !unset.empty())
      all.emplace_back(option->get_lnames()[0], option->count() > 0 ? value : unset);
  }
  return all;
}

}  // namespace tessera::tools
