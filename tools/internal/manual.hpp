#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace CLI {
class App;
}

// Pages made from the one table of options there is: the command line itself.
namespace tessera::tools::internal {

// "man": a manual page in roff; "bash", "zsh", "fish": a completion script, sub-commands and their
// options included. Nothing for another word. `program` is the name it is called by.
std::optional<std::string> generated_page(const CLI::App& app, const std::string& program,
                                          const std::string& kind);

// The text with no line of more than kColumns columns: longer ones are broken between words, and go
// on `indented` columns from the left where they begin with two spaces, else `flush`. Lines without
// a space to break at stay.
inline constexpr std::size_t kColumns = 100;
std::string wrapped(const std::string& text, std::size_t indented, std::size_t flush);

// Where CLI11 begins descriptions on help pages.
inline constexpr std::size_t kDescriptions = 30;

}  // namespace tessera::tools::internal
