#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace CLI {
class App;
}

// Pages that are generated from the definition of the command line.
namespace tessera::tools {

// Returns a generated page: a manual page in roff for the kind "man", a completion script with
// sub-commands and their options for "bash", "zsh" and "fish", and no value for any other kind.
// `program` is the name of the program.
std::optional<std::string> generated_page(const CLI::App& app, const std::string& program,
                                          const std::string& kind);

// The column in which CLI11 begins the descriptions on help pages.
inline constexpr std::size_t kDescriptions = 30;

}  // namespace tessera::tools
