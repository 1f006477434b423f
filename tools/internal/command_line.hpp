#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/block_shape.hpp"

namespace CLI {
class App;
}

// What is done to a command line before CLI11 reads it, and how it is read.
namespace tessera::tools::internal {

// The words with every "@FILE" replaced by the words of that file (between white space; quotes '
// and " keep it, a backslash takes the next character as it is, '#' starts a comment; such files
// may name others, 8 deep), and every long option that starts exactly one option's name replaced by
// that name, as PopSparse's tools allow. A word that an option takes as its value stays. After
// "--" nothing changes. Error{InvalidArgument} names the options that a start could mean;
// Error{BadInput} a file that cannot be read or an open quote.
std::vector<std::string> expand_words(const CLI::App& app, const std::vector<std::string>& words);

// The words of a text, as in a file above. `name` stands for it in messages.
std::vector<std::string> split_words(const std::string& text, const std::string& name);

// Parses, and adds --version; "--generate KIND" alone prints a page of manual.hpp; help, version
// and usage errors are printed and give the exit code, else there is none. A name that does not
// exist is answered with the nearest that does. Error{Internal} when help could not be written.
std::optional<int> parse_command_line(CLI::App& app, int argc, const char* const* argv);

// --config FILE: options as lines "name = value"; the command line goes before them.
void add_config_option(CLI::App& app);

// Two whole numbers from 0 written "a,b" or "{a,b}"; one alone stands for both. Nothing when `text`
// is none of these.
std::optional<std::pair<std::int64_t, std::int64_t>> parse_pair(std::string text);

// Every option with its effective value, by long name in the order of the help page.
std::vector<std::pair<std::string, std::string>> effective_configuration(const CLI::App& app);

}  // namespace tessera::tools::internal
