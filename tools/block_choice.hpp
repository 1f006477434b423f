#pragma once

#include <string>

#include "tessera/planner/options.hpp"
#include "tessera/tools/layer_arguments.hpp"

namespace tessera::tools {

// Sets the block of arguments that ask for it (chooses_block) to the square block with the least
// cost of all passes: planned cycles, or the forecast for this computer. A file's pattern is
// counted in every block; a random pattern has the same density in every block. `base` has the
// planner options that those of the arguments apply to. Returns a note with the choice and the
// costs of the other blocks; it is empty if there was nothing to choose. Throws the errors of
// load_weights(), make_machine() and make_options().
std::string choose_block(LayerArguments& arguments, const planner::Options& base);

}  // namespace tessera::tools
