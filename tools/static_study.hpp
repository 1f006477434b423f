#pragma once

#include <cstdint>
#include <list>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/planner/static_plan.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::tools {

// The most blocks of a pattern that a study draws.
inline constexpr std::int64_t kMostStaticBlocks = std::int64_t{1} << 20;

// Costs of layers whose pattern stays, for studies that look at many of them. Patterns are drawn
// once for all batches, passes and machines, and what their cuts have in common is counted once.
// One thread may use it at a time.
class StaticStudy {
 public:
  // Returns the cost of a random pattern of the problem's blocks and density: that of a good cut
  // (StaticPlanner::quick_cost). The rows and columns of the problem are rounded up to whole
  // blocks. Without a cost, `reason` says why; more than kMostStaticBlocks blocks and blocks
  // without a static kernel are reasons. Throws the errors of planner::plan_static() otherwise.
  planner::StaticCostResult random(const Problem& problem, const device::Machine& machine,
                                   const planner::StaticOptions& options);

  // Returns the largest density, in steps of a thousandth, below which random() may find a cost
  // below `cycles`: a higher density has too many blocks or a kernel that takes longer. 0 if there
  // is none.
  static double highest_density(const Problem& problem, const device::Machine& machine,
                                double cycles);

 private:
  // A drawn pattern. The planner has views of the arrays, so a pattern keeps its place in memory.
  struct Drawn {
    sparse::Csr<char> pattern;  // without values
    planner::StaticPlanner planner;
  };

  Drawn& drawn(const Problem& problem, std::int64_t blocks);

  std::list<Drawn> drawn_;  // the last used first
};

}  // namespace tessera::tools
