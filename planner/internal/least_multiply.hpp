#pragma once

#include <cstdint>

#include "tessera/planner/internal/estimate.hpp"

// The multiplication in the bound of a box of partitions (lower_bound.hpp).
namespace tessera::planner::internal {

// A box in the naming of one pass, with the least sizes anywhere in it.
struct Least {
  Dims lo, hi;              // partition counts
  Dims grain;               // of the pass
  Dims all;                 // grains of the layer
  Dims share;               // least grains of a tile
  std::int64_t most_z = 0;  // most z grains of a tile
  UniformCounts counts;     // rows and total of the least share
  double density = 0;       // not above that of any fullest cell
  std::int64_t bucket_blocks = 0, bucket_bytes = 0, meta_bytes = 0;

  // False: no partition lets the tiles of a bus receive dense slices, or buckets, together.
  bool slices_share_bus = true, buckets_share_bus = true;
};

// Returns a lower bound of the cycles in which a tile multiplies in Fwd or GradA.
std::int64_t least_multiply(const Case& c, Method method, const Least& v);

// Returns that of GradW, in all rounds over z.
std::int64_t least_grad_w_multiply(const Case& c, const Least& v);

}  // namespace tessera::planner::internal
