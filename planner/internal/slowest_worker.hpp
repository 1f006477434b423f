#pragma once

#include <cstdint>

#include "tessera/codelets/cost/matmul_cycles.hpp"
#include "tessera/planner/internal/layout.hpp"

namespace tessera::planner::internal {

// The job of the workers of one tile.
struct WorkersJob {
  const codelets::MatMulKernel& kernel;
  TileLoad load;
  std::int64_t records = 1;         // buckets that hold a piece of the cell
  std::int64_t z = 0, z_grain = 1;  // batch of the tile in grains, and columns of a grain
  // Non-zeros of the busiest worker, for kernels that divide these alone; 0: an even share.
  double busiest = 0;
};

// Returns the cycles of the workers: their number times the sum, over `records` equal pieces of the
// load, of the cycles of the slowest worker of each piece. The sum is of the slowest ones because
// workers wait for each other at the end of every record.
std::int64_t workers_cycles(const WorkersJob& job);

}  // namespace tessera::planner::internal
