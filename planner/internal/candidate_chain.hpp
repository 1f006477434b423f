#pragma once

#include <cstddef>
#include <vector>

#include "tessera/device/machine.hpp"
#include "tessera/planner/internal/priced_layer.hpp"
#include "tessera/planner/network.hpp"
#include "tessera/planner/plan_network.hpp"

namespace tessera::planner::internal {

// The candidates of all layers with their costs. Layers that cost the same, because they are alike
// and have the same place in the network, share those of the first one of them: networks may have
// hundreds of equal layers. Only the numbers of layers in the work are then those of that one.
class PricedCandidates {
 public:
  PricedCandidates(const NetworkSpec& spec, const std::vector<LayerCandidates>& candidates,
                   const device::Machine& machine);

  std::size_t size() const { return same_.size(); }
  const std::vector<PricedLayer>& operator[](std::size_t l) const { return priced_[same_[l]]; }

  // Returns the number of the layer whose costs are those of layer `l`.
  std::size_t same(std::size_t l) const { return same_[l]; }

 private:
  std::vector<std::size_t> same_;
  std::vector<std::vector<PricedLayer>> priced_;  // empty if those of another layer serve
};

// Returns the candidate of each layer, as an index, with which the network takes the fewest cycles
// and fits the memory of a tile; empty if no choice fits.
std::vector<std::size_t> cheapest_chain(const PricedCandidates& candidates,
                                        const device::Machine& machine);

}  // namespace tessera::planner::internal
