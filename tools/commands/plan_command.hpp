#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace tessera::tools {

// Adds `plan` to `app`. Parsing it sets `run` to a function that performs the command, returns the
// exit code and throws the errors of the stages. `run` must live until then.
void add_plan_command(CLI::App& app, std::function<int()>& run);

}  // namespace tessera::tools
