#pragma once

#include <initializer_list>
#include <string>

#include "tessera/tools/layer_arguments.hpp"

namespace CLI {
class App;
}

namespace tessera::tools::internal {

// --dense.
void add_host_options(CLI::App& app, LayerArguments& arguments);

// An option that this computer does not take, and why.
struct RefusedOption {
  RefusedOption(const char* option) : name(option) {}
  RefusedOption(const char* option, const char* reason) : name(option), why(reason) {}

  const char* name;
  const char* why = "applies only to modelled machines with tiles";
};

// Where the machine is this computer: CLI::ValidationError for the first of these options that the
// command line gives, and for planner options, which steer what only tiles have. Keys that
// belong to the layer may stand among them. On any other machine: for --dense.
void refuse_tile_options(const CLI::App& app, const LayerArguments& arguments,
                         std::initializer_list<RefusedOption> options);

}  // namespace tessera::tools::internal
