#pragma once

namespace CLI {
class App;
}

namespace tessera::tools {

// Gives the help of a program and its commands its form: options in groups (layer, machine,
// planner, output, others), each with the kind of its value and its default, and legal ranges at
// the end of the description. All options must have been added.
void format_help(CLI::App& app);

}  // namespace tessera::tools
