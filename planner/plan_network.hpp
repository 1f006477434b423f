#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/device/machine.hpp"
#include "tessera/planner/network.hpp"
#include "tessera/planner/options.hpp"
#include "tessera/planner/plan.hpp"

namespace tessera::planner {

// The plans of all layers of a network, chosen together.
struct NetworkPlan {
  std::vector<Plan> plans;     // by layer
  std::vector<WorkCost> work;  // of all layers, one entry for each kind and layer
  Cycles cycles;               // sum over the work
  Bytes memory;                // of the fullest tile: what stays on it, and the largest pass

  // For comparison, the same network made of the cheapest plan of each layer: if every layer is a
  // program of its own, so that exchanges of their own hand tensors over, and as one program.
  Cycles layer_by_layer, cheapest_of_each;
  bool layer_by_layer_fits = false;  // the memory of that program
  std::int64_t candidates = 0;       // plans of all layers that were compared

  // The same network made of layers that stand alone, each with its cheapest plan for operands and
  // results that are spread evenly over all tiles (Placement::EvenSpread). Results then go to that
  // spread, and passes put them and their operands in order.
  // Empty: choose_plans() does not plan such layers, or a layer has no such plan.
  std::optional<Cycles> standing_alone;

  // Returns the cycles that were saved, as a proportion of layer_by_layer; 0 if that does not fit.
  double gain() const;
};

// The plans that one layer may have in a network, the cheapest for the layer alone first.
using LayerCandidates = std::vector<Plan>;

// Returns up to `most` plans of a layer: the cheapest one of all; up to half of `most` pairs of the
// cheapest plans of two layouts; and the cheapest ones among those with one layout and a given
// number of parts along x or along the batch. All have operands at home, whatever the options say.
// Throws Error{NoSolution} with the reason if there is no plan.
LayerCandidates layer_candidates(const Problem& problem, const device::Machine& machine,
                                 const Options& options, std::size_t most);

// Chooses one candidate for each layer so that the whole network takes the fewest cycles,
// hand-overs included, among the choices whose memory fits a tile: the sum of what stays, and the
// largest temporary memory of a pass. Exact: dynamic programming over the chain that keeps, for
// each candidate of the last layer, every choice before it that no other one beats in cycles,
// memory that stays and temporary memory together. Throws Error{NoSolution}, which names the layer
// that needs most memory, if no choice fits.
NetworkPlan choose_plans(const NetworkSpec& spec, const std::vector<LayerCandidates>& candidates,
                         const device::Machine& machine);

// The largest number of plans of a layer that plan_network compares.
inline constexpr std::size_t kCandidatesPerLayer = 16;

// Plans a network: layer_candidates() of each sparse layer and the dense plan of each dense one, to
// which planConstraints do not apply; then choose_plans(). Layers with equal problems are planned
// once. Throws Error{InvalidArgument} if spec, machine or options are illegal
// or ask for useDense, and Error{NoSolution} if a layer or all together have no plan.
NetworkPlan plan_network(const NetworkSpec& spec, const device::Machine& machine,
                         const Options& options = {});

// Returns what joint planning gained, as one line of text.
std::string to_string(const NetworkPlan& plan);

}  // namespace tessera::planner
