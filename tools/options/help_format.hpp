#pragma once

namespace CLI {
class App;
}

namespace tessera::tools {

// Adds --help-all to a program and its commands.
void add_help_all(CLI::App& app);

// Gives the help of a program and its commands its form: options in groups (layer, machine,
// planner, output, others), each with the kind of its value and its default, and legal ranges at
// the end of the description. All options must have been added.
void format_help(CLI::App& app);

// Takes from the help of commands with more than 14 options those that few people use. The parser
// has no names for them then, so it must have parsed.
void hide_rare_options(CLI::App& app);

}  // namespace tessera::tools
