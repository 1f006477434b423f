#pragma once

#include <cstdint>
#include <optional>

#include "tessera/partitioner/internal/figures.hpp"
#include "tessera/partitioner/internal/holdings.hpp"

namespace tessera::partitioner::internal {

struct FewestSteps {
  std::optional<Holdings> holdings;  // a placement better than the one to beat, if one was found
  Figures figures;                   // of it
  std::int64_t lower_bound = 0;      // no placement at all has fewer steps
};

// Looks for the placement with the fewest steps, then the least travel, then the fewest row parts.
//
// Displacements that are visited are searched in order of their number; for each set, maximum flow
// in the optimistic model says whether it can do, and place() whether it does.
//   up to kExactCells cells   all sets of a number, up to kMostFlowWork; among the sets with
//                             the least number the one with the least travel is taken
//   above                     one step; then home and one x distance, with y distances
//   for the rest              three families of sets only: column by column, row by row, and
//                             the x distances that lead most blocks straight to free room
// `whole` has pieces whole at home. Deterministic. Cost: see the README.
FewestSteps spill_in_fewest_steps(const Holdings& whole, const Figures& to_beat);

inline constexpr std::int64_t kExactCells = 256;
inline constexpr std::int64_t kMostFlowWork = 60'000;  // sum over flows of cells * displacements

}  // namespace tessera::partitioner::internal
