#pragma once

#include <initializer_list>
#include <string>

#include "tessera/tools/options/layer_arguments.hpp"

namespace CLI {
class App;
}

namespace tessera::tools {

// Adds --dense.
void add_host_options(CLI::App& app, LayerArguments& arguments);

// On this computer, operands are floats unless the command line gives their type.
void take_host_defaults(const CLI::App& app, LayerArguments& arguments);

// An option that cannot be used with this computer, and the reason.
struct RefusedOption {
  RefusedOption(const char* option) : name(option) {}
  RefusedOption(const char* option, const char* reason) : name(option), why(reason) {}

  const char* name;
  const char* why = "applies only to modelled machines with tiles";
};

// Throws CLI::ValidationError if the machine is this computer and the command line gives one of
// `options` or any planner option, because those apply to tiles only. PopSparse's layer keys are
// allowed among the planner options. For any other machine, throws if
// --dense asks for dense passes.
void refuse_tile_options(const CLI::App& app, const LayerArguments& arguments,
                         std::initializer_list<RefusedOption> options);

}  // namespace tessera::tools
