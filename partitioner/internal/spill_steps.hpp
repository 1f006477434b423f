#pragma once

#include <cstdint>
#include <optional>

#include "tessera/partitioner/internal/figures.hpp"
#include "tessera/partitioner/internal/holdings.hpp"

namespace tessera::partitioner::internal {

struct FewestSteps {
  std::optional<Holdings> holdings;  // a placement better than the one to beat, if one was found
  Figures figures;                   // figures of that placement
  std::int64_t lower_bound = 0;      // no placement has fewer steps
};

// Looks for the placement with the fewest steps, then the least travel, then the fewest row parts.
//
// Sets of displacements are searched in order of their size. For each set, maximum flow in the
// optimistic model says whether it is possible, and place() whether it succeeds.
//   up to kExactCells cells   all sets of a size, up to kMostFlowWork; among the sets of the
//                             smallest size the one with the least travel is taken
//   above                     one step; then home and one x distance, with y distances
//   for the rest              three families of sets only: column by column, row by row, and
//                             the x distances that lead most blocks straight to free capacity
// `whole` has pieces whole at home. Deterministic. The README gives the cost.
FewestSteps spill_in_fewest_steps(const Holdings& whole, const Figures& to_beat);

inline constexpr std::int64_t kExactCells = 256;
inline constexpr std::int64_t kMostFlowWork = 60'000;  // sum over flows of cells * displacements

}  // namespace tessera::partitioner::internal
