#pragma once

#include <optional>

#include "tessera/planner/internal/dense_estimate.hpp"
#include "tessera/planner/internal/search.hpp"

namespace tessera::planner::internal {

// The most rounds of a dense pass.
inline constexpr std::int64_t kMostDenseRounds = 256;

// The bytes of a tile that a dense pass may use, and the cycles that it must stay below.
struct DenseLimits {
  std::int64_t temp = 0;  // temporary data
  std::int64_t all = 0;   // temporary and resident data

  // Only cuts with fewer cycles are looked for.
  std::int64_t fewer_than = kUnbounded;
};

// The cheapest cut and its cost.
struct DenseChoice {
  DenseCut cut;
  DenseEstimate estimate;
};

// The outcome of a search: the cheapest cut if any keeps the limits, else the least bytes of
// temporary and resident data together of all cuts.
struct DenseSearch {
  std::optional<DenseChoice> best;
  std::int64_t least_bytes = 0;  // of meaning only if there is no `best`
  std::int64_t estimates = 0;    // cuts whose cost was computed
};

// Looks at all partitions, orders and roles, first in one round and, while none keeps the limits of
// memory, in twice as many rounds, up to 256. Of equally cheap cuts, the first one with the least
// temporary memory is found. Cuts whose lower bound is above the best cost are not priced. If no
// cut costs fewer cycles than `fewer_than`, none is found, and `least_bytes` has no meaning. Tests
// compare it with a search that prices every cut.
DenseSearch search_dense(const DenseCase& c, const DenseLimits& limits);

// Returns the plan of a pass that was chosen, and adds a pass to the plan of a layer.
DensePassPlan pass_plan(const DenseCase& c, const DenseChoice& best);
void add_pass(DensePlan& plan, DensePassPlan pass, Bytes resident);

}  // namespace tessera::planner::internal
