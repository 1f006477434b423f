#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace CLI {
class App;
}

// Pages that are generated from the definition of the command line.
namespace tessera::tools::internal {

// Returns a generated page: a manual page in roff for the kind "man", a completion script with
// sub-commands and their options for "bash", "zsh" and "fish", and no value for any other kind.
// `program` is the name of the program.
std::optional<std::string> generated_page(const CLI::App& app, const std::string& program,
                                          const std::string& kind);

// Returns the text with lines of at most kColumns columns. A longer line is broken between words;
// it continues `indented` columns from the left if it begins with two spaces, else `flush` columns.
// A line without a space to break at is not changed.
inline constexpr std::size_t kColumns = 100;
std::string wrapped(const std::string& text, std::size_t indented, std::size_t flush);

// The column in which CLI11 begins the descriptions on help pages.
inline constexpr std::size_t kDescriptions = 30;

}  // namespace tessera::tools::internal
