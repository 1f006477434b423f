#pragma once

#include <initializer_list>
#include <string>

#include "tessera/tools/layer_arguments.hpp"

namespace CLI {
class App;
}

namespace tessera::inline v0::tools::internal {

// Where the machine is this computer: CLI::ValidationError for the first of these options that the
// command line gives, and for planner options, which steer what only tiles have. After parsing and
// with_layer_keys.
void refuse_tile_options(const CLI::App& app, const LayerArguments& arguments,
                         std::initializer_list<const char*> options);

}  // namespace tessera::inline v0::tools::internal
