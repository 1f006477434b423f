#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/planner/dense_plan.hpp"

namespace tessera::planner {

// The plan of a search for the blocks of largest weight gradient. The dense gradient
// dQ * transpose(S) is computed in rounds that fit the tiles, as GradW of a dense layer is, with
// float sums. Tiles and rounds cut it between blocks, and no tile shares a sum with another one. It
// is never stored: after each round, every tile keeps its best blocks.
struct DenseGradWPlan {
  DensePlan dense;  // one pass, GradW; its term "reduce sums" is the selection
  BlockShape block;
  std::int64_t keep = 1;     // blocks on each tile
  ProductShape round_grain;  // of rows and columns that rounds do not cut

  friend bool operator==(const DenseGradWPlan&, const DenseGradWPlan&) = default;

  const DensePassPlan& pass() const { return dense.passes.front(); }
};

// Everything that a caller can choose about such a plan.
struct DenseGradWOptions {
  std::int64_t places = 1;  // that are looked for, at least 1

  // A tile keeps this many times its even share of the places, and 64 at least, so that one search
  // often suffices although the largest gradients are spread unevenly. At least 1.
  std::int64_t spare = 4;

  // The share of a tile's memory that temporary data may take, in (0, 1].
  double available_memory_proportion = 0.6;
};

// The plan, or the reason why there is none.
struct DenseGradWResult {
  std::optional<DenseGradWPlan> plan;
  std::string reason;  // empty if there is a plan
};

// Plans the search for a problem of one group, in blocks of its shape. Of all partitions it has the
// fewest expected cycles; among these the least temporary memory. Throws Error{InvalidArgument} for
// an invalid problem, machine or option, for more than one group, and for more than 2^32 blocks.
// Takes milliseconds. Thread-safe.
DenseGradWResult plan_dense_grad_w(const Problem& problem, const device::Machine& machine,
                                   const DenseGradWOptions& options = {});

}  // namespace tessera::planner
