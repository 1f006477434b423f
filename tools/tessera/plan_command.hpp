#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace tessera::tools {

// Adds `plan` to `app`; parsing it sets `run` to what it does, which gives the exit code and throws
// Error as the stages do. `run` must live until then.
void add_plan_command(CLI::App& app, std::function<int()>& run);

}  // namespace tessera::tools
