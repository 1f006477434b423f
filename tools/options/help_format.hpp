#pragma once

namespace CLI {
class App;
}

namespace tessera::tools {

// Adds --help-all to a program and its commands.
void add_help_all(CLI::App& app);

// Gives the help of a program and its commands its form: options in groups (layer, machine,
// planner, output, others), each with the kind of its value and its default, and legal ranges at
// the end of the description. Of a command with more than 14 options only those that people use are
// shown, unless `shows_all`. All options must have been added.
void format_help(CLI::App& app, bool shows_all);

}  // namespace tessera::tools
