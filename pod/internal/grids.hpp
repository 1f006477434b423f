#pragma once

#include <vector>

#include "tessera/pod/internal/pod_cost.hpp"
#include "tessera/pod/plan_pod.hpp"

namespace tessera::pod::internal {

// The grids with the same parts of each dimension in all. Their devices have the same plans.
struct GridFamily {
  Dims parts;
  std::vector<PodGrid> layouts;  // of these parts on the levels of the pod
};

// Returns all grids that suit a problem and obey the pins, by their parts in ascending order.
std::vector<GridFamily> grid_families(const Problem& problem, const device::Pod& pod,
                                      const GridPins& pins);

// The cheapest layout of a family and the time of all collectives and barriers of all passes.
struct CheapestLayout {
  PodGrid grid;
  double seconds = 0;
};
CheapestLayout cheapest_layout(LevelPrices& prices, const Problem& problem,
                               const GridFamily& family, std::int64_t serial_parts);

}  // namespace tessera::pod::internal
