#pragma once

#include <cstdint>
#include <optional>

#include "tessera/planner/internal/static_counted.hpp"

// The search of static plans by counts of the pattern.
namespace tessera::planner::internal {

// The limits that a cut must keep.
struct StaticLimits {
  std::int64_t temp = 0;   // bytes of temporary data on a tile
  std::int64_t bytes = 0;  // bytes of a tile
};

// The way in which the tiles of a band get their blocks.
enum class RunKind {
  Even,       // equally many blocks each; rows are cut
  WholeRows,  // only rows longer than a run are cut; runs are even in blocks
  LightRows,  // as WholeRows, but a row counts as half a block besides its blocks
  UncutRows   // no row is cut
};

// A cut of the family that is searched: all parts of the batch have equally many tiles and the same
// layout.
struct CountedCut {
  std::int64_t share = 0;  // columns of a part of the batch; the last part may have fewer
  std::int64_t parts = 1, bands = 1;
  std::int64_t tiles = 1;  // that a part may use
  RunKind runs = RunKind::Even;

  friend auto operator<=>(const CountedCut&, const CountedCut&) = default;
};

// The limit that every cut breaks, as the cut comes nearest to it.
struct StaticObstacle {
  std::int64_t least_bytes = 0;  // on a tile, of any cut whose words fit
  std::int64_t least_word = 0;   // largest number of a kernel's words, of the cut with the smallest
};

// The cheapest cut that was counted.
struct CountedSearch {
  std::optional<CountedCut> best;
  PlanCost cost;
  StaticObstacle obstacle;   // of meaning only if there is no `best`
  std::int64_t counted = 0;  // cuts whose cost was counted
};

// Returns true if no number of the kernels' words is past 16 bits.
bool fits_words(const CountedCost& cost);

// Searches the cuts. All are estimated, as if blocks were spread at random; the most promising ones
// are counted, and then the neighbours of the best until none is better, also with fewer tiles. A
// cut whose kernel, values and fixed steps alone exceed the best is not counted. Deterministic.
CountedSearch search_by_counts(const StaticCase& c, const BlockPattern& pattern,
                               const StaticLimits& limits);

// Returns the plan of a cut.
StaticPlan plan_of(const StaticCase& c, const BlockPattern& pattern, const CountedCut& cut,
                   PlanCost cost);

}  // namespace tessera::planner::internal
