#pragma once

#include <optional>
#include <string>

#include "tessera/study/target.hpp"
#include "tessera/tools/options/layer_arguments.hpp"

// The cost models of the layers that a command line describes.
namespace tessera::tools {

// Returns the pattern of --matrix as elements whose values are all 1, so that explicit zeros stay
// in it, and sets the sizes of the layer. Returns no value if no file is given. Throws the errors
// of io::read_weights().
std::optional<sparse::Csr<double>> load_pattern(LayerArguments& arguments);

// Returns the machine of the arguments with their planner options, which apply to `base`, and their
// plan cache; or this computer, whose measurements end with Ctrl-C. Throws the errors of
// make_machine() and make_options(), and Error{InvalidArgument} if a constraint asks for dense.
study::Target target_of(const LayerArguments& arguments, const planner::Options& base = {});

// Sets the block of arguments that ask for it (chooses_block) to the square block with the least
// cost of all passes: planned cycles, or the forecast for this computer. A file's pattern is
// counted in every block; a random pattern has the same density in every block. `base` has the
// planner options that those of the arguments apply to. Returns a note with the choice and the
// costs of the other blocks; it is empty if there was nothing to choose. Throws the errors of
// io::read_weights() and target_of().
std::string choose_block(LayerArguments& arguments, const planner::Options& base);

// Does the same for a pattern that was read already, as elements; nullptr: it is random.
std::string choose_block(LayerArguments& arguments, const planner::Options& base,
                         const sparse::Csr<double>* ones);

}  // namespace tessera::tools
