#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/block_shape.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

// The expansion of command lines before CLI11 reads them, and the reading itself.
namespace tessera::tools {

// The most words of a command line with its option files, and of a text that split_words() takes.
inline constexpr std::int64_t kMostWords = std::int64_t{1} << 16;

// Returns the words after two replacements.
//   * "@FILE" becomes the words of that file. Words are separated by white space, which the quotes
//   '
//     and " protect; a backslash protects the next character; '#' starts a comment. Such files may
//     name other files, up to 8 levels deep and up to kMostWords words and 64 MiB in all.
//   * A long option that is the start of exactly one option's name becomes that name, as in
//     PopSparse's tools.
// A word that is the value of an option is not changed, nor is any word after "--". Throws
// Error{InvalidArgument}, which names the candidates, for an ambiguous start, and Error{BadInput}
// for a file that cannot be read, for an open quote and beyond the limits.
std::vector<std::string> expand_words(const CLI::App& app, const std::vector<std::string>& words);

// Splits a text into words by the rules for files above. Messages call the text `name`.
std::vector<std::string> split_words(const std::string& text, const std::string& name);

// Adds --version and parses the command line. Prints help, the version, usage errors, and for
// "--generate KIND" alone a page of manual.hpp, and then returns the exit code; otherwise returns
// no value. Checks the files that the command line names (check_paths). The message for an unknown
// name suggests the nearest known one. Throws Error{Internal} if help could not be written.
std::optional<int> parse_command_line(CLI::App& app, int argc, const char* const* argv);

// Throws CLI::ValidationError if an option of the parsed command line has an empty value, which a
// shell makes of a variable that is not set.
void refuse_empty_values(const CLI::App& app);

// Adds --config FILE, which reads options as lines "name = value". The command line overrides them.
void add_config_option(CLI::App& app);

// Reads two whole numbers of at least 0, written "a,b" or "{a,b}". A single number is used for
// both. Returns no value for any other text.
std::optional<std::pair<std::int64_t, std::int64_t>> parse_pair(std::string text);

// Returns every option with its effective value, by its long name, in the order of the help page.
std::vector<std::pair<std::string, std::string>> effective_configuration(const CLI::App& app);

}  // namespace tessera::tools
