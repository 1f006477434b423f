#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/dims.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/base/placement.hpp"
#include "tessera/base/units.hpp"
#include "tessera/codelets/cost/method.hpp"
#include "tessera/planner/cost_term.hpp"
#include "tessera/planner/dense_plan.hpp"
#include "tessera/planner/plan_cost.hpp"

namespace tessera::planner {

using codelets::Method;

// A plan states how a layer is cut over the tiles of a machine, which methods run its passes, and
// what they cost. It is a plain value.
//
// Share i of a dimension is share_of(size, grain, partition, i). No share is empty, with the batch
// rounded up to whole grains. Each of the Pg * Px * Py * Pz tiles in use has one bucket.
struct Plan {
  Method fwd = Method::ElementFwd;
  Method grad_a = Method::ElementTranspose;  // set even if the pass is not planned
  Method grad_w = Method::ElementGradW;      // set even if the pass is not planned
  BlockShape block;                          // of the tiles; divides the problem's block if sparse
  Dims grain;      // elements that are never cut: block rows, block columns, z
  Dims partition;  // Pg, Px, Py, Pz
  bool grad_w_exchange_buckets = false;  // GradW: true if buckets travel, false if operands do
  bool use_dense = false;                // all of R is kept, in large blocks or by `dense`
  Placement operand_placement = Placement::AtHome;  // that the costs are for and the engine runs
  std::int64_t nonzeros_per_bucket = 0;             // elements, padding included
  Words fwd_meta_words;                             // per bucket, end marker included
  Words grad_a_meta_words;  // 0 when GradA reads the forward meta-information
  PlanCost cost;

  // The second layout. If it is empty, one layout serves all passes. If it holds one plan, GradA
  // has a separate layout, which is planned as Fwd of the transposed layer (rows are y, columns are
  // x); that layout also runs GradW if its cost contains that pass. `cost` is then that of both
  // layouts, including the move of R's values from one to the other, and the methods, partition and
  // bucket sizes above are those of Fwd.
  std::vector<Plan> backward;

  // If it holds a plan, the passes multiply all of R without buckets. `use_dense` is then true,
  // `cost` is that of this plan, `partition` and `grain` are those of its Fwd, and methods and
  // bucket sizes have no meaning.
  std::optional<DensePlan> dense;

  friend bool operator==(const Plan&, const Plan&) = default;
  std::int64_t tiles_used() const { return partition.product(); }

  // Returns true if GradA reads the forward meta-information.
  bool shared_buckets() const;

  // Returns true if the second layout, that of transpose(R), runs the pass.
  bool runs_transposed(Pass pass) const;

  // Returns the layout that runs the pass: this plan or `backward[0]`.
  const Plan& layout_of(Pass pass) const { return runs_transposed(pass) ? backward[0] : *this; }

  std::int64_t blocks_per_bucket() const { return nonzeros_per_bucket / block.area(); }
};

// Returns the plan as text: the methods, partition and buckets, then every pass and its terms in
// cycles and bytes, one line each.
std::string to_string(const Plan& plan);

}  // namespace tessera::planner
