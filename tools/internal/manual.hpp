#pragma once

#include <optional>
#include <string>

namespace CLI {
class App;
}

// Pages made from the one table of options there is: the command line itself.
namespace tessera::inline v0::tools::internal {

// "man": a manual page in roff; "bash", "zsh", "fish": a completion script, sub-commands and their
// options included. Nothing for another word. `program` is the name it is called by.
std::optional<std::string> generated_page(const CLI::App& app, const std::string& program,
                                          const std::string& kind);

}  // namespace tessera::inline v0::tools::internal
