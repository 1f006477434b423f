#pragma once

#include <memory>
#include <optional>
#include <string>

#include "tessera/host/rates.hpp"
#include "tessera/study/cost_model.hpp"
#include "tessera/study/static_model.hpp"
#include "tessera/tools/options/layer_arguments.hpp"

// The cost models of the layers that a command line describes.
namespace tessera::tools {

// Returns the pattern of --matrix as elements whose values are all 1, so that explicit zeros stay
// in it, and sets the sizes of the layer. Returns no value if no file is given. Throws the errors
// of load_weights().
std::optional<sparse::Csr<double>> load_pattern(LayerArguments& arguments);

// Returns the plans of a layer on a machine, under the planner options, which apply to `base`, and
// the cache of the arguments. Throws the errors of make_options(), and Error{InvalidArgument} if a
// constraint asks for dense.
std::unique_ptr<study::CostModel> planned_model(const LayerArguments& arguments,
                                                const Problem& problem,
                                                const device::Machine& machine,
                                                const planner::Options& base = {});

// Returns the costs of patterns that stay, on the same terms.
std::unique_ptr<study::CostModel> static_model(const LayerArguments& arguments,
                                               const Problem& problem,
                                               const device::Machine& machine,
                                               std::shared_ptr<study::DrawnPatterns> patterns);

// Returns the rates of this computer, or those of another one with a note.
host::FoundRates rates_of_this_computer();

// Returns the measured runs of a layer on this computer until Ctrl-C; `spread` is that of
// study::MeasuredModel.
std::unique_ptr<study::CostModel> measured_model(const Problem& problem, double spread);

// Sets the block of arguments that ask for it (chooses_block) to the square block with the least
// cost of all passes: planned cycles, or the forecast for this computer. A file's pattern is
// counted in every block; a random pattern has the same density in every block. `base` has the
// planner options that those of the arguments apply to. Returns a note with the choice and the
// costs of the other blocks; it is empty if there was nothing to choose. Throws the errors of
// load_weights(), make_machine() and make_options().
std::string choose_block(LayerArguments& arguments, const planner::Options& base);

// Does the same for a pattern that was read already, as elements; nullptr: it is random.
std::string choose_block(LayerArguments& arguments, const planner::Options& base,
                         const sparse::Csr<double>* ones);

}  // namespace tessera::tools
