#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/dims.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/base/units.hpp"
#include "tessera/codelets/cost/method.hpp"

namespace tessera::planner {

using codelets::Method;

// One line of an estimate. Cycles are of the slowest tile, bytes are temporary memory of one tile
// while the step runs.
struct CostTerm {
  std::string name;
  Cycles cycles;
  Bytes temp;

  friend bool operator==(const CostTerm&, const CostTerm&) = default;
};

// What a pass costs, term by term.
struct PassCost {
  Pass pass = Pass::Fwd;
  std::vector<CostTerm> terms;  // in the order the steps run

  friend bool operator==(const PassCost&, const PassCost&) = default;
  Cycles cycles() const;  // sum over the terms
  Bytes temp() const;     // largest of the terms
};

// What a plan costs, pass by pass; bytes are those of the fullest tile.
struct PlanCost {
  Cycles cycles;                 // sum over the passes
  Bytes temp;                    // largest of the passes
  Bytes resident;                // buckets and the tile's share of the dense operands
  std::vector<PassCost> passes;  // planned passes, in the order Fwd, GradA, GradW

  friend bool operator==(const PlanCost&, const PlanCost&) = default;
  // The cost of that pass, or nullptr when it was not planned.
  const PassCost* find(Pass pass) const;
};

// How a layer lies on the tiles. A plain value.
//   Share i of a dimension is share_of(size, grain, partition, i); no share is empty (with the
//   batch rounded up to whole grains). Every tile has one bucket; Px * Py * Pz tiles are used.
struct Plan {
  Method fwd = Method::ElementFwd;
  Method grad_a = Method::ElementTranspose;  // set even when the pass is not planned
  Method grad_w = Method::ElementGradW;      // set even when the pass is not planned
  BlockShape block;                          // the tiles' blocks; divides the problem's block
  Dims grain;                                // elements that are never cut: block rows, cols, z
  Dims partition;                            // Pg, Px, Py, Pz
  bool grad_w_exchange_buckets = false;      // GradW: buckets travel, else dense operands
  bool use_dense = false;
  std::int64_t nonzeros_per_bucket = 0;  // elements, padding included
  Words fwd_meta_words;                  // per bucket, end marker included
  Words grad_a_meta_words;               // 0 when GradA reads the forward meta-information
  PlanCost cost;
  // Empty: one layout serves all passes. One plan: GradA has a layout of its own, planned as Fwd of
  // the transposed layer (rows are y, columns x); it runs GradW too when its cost has that pass.
  // `cost` then is that of both, moving R's values from one to the other included; methods,
  // partition and buckets above are those of Fwd.
  std::vector<Plan> backward;

  friend bool operator==(const Plan&, const Plan&) = default;
  std::int64_t tiles_used() const { return partition.product(); }
  bool shared_buckets() const;
  // The layout that runs a pass, and whether it is the transposed one.
  bool runs_transposed(Pass pass) const;
  const Plan& layout_of(Pass pass) const { return runs_transposed(pass) ? backward[0] : *this; }
  std::int64_t blocks_per_bucket() const { return nonzeros_per_bucket / block.area(); }
};

// The plan, then every pass with its terms in cycles and bytes; a line each.
std::string to_string(const Plan& plan);
std::ostream& operator<<(std::ostream& out, const Plan& plan);

}  // namespace tessera::planner
