#pragma once

#include <cstdint>

#include "tessera/codelets/cost/matmul_cycles.hpp"
#include "tessera/planner/internal/layout.hpp"

namespace tessera::planner::internal {

// Returns the load of a cell of share.x rows and share.y columns that holds `blocks`, where the
// other cells are filled as `scatter` describes.
TileLoad cell_load(Dims share, double blocks, const Scatter& scatter);

// Returns the load of the transposed cell: its rows are the columns of R.
TileLoad swapped(const TileLoad& load);

// The job of the workers of one tile.
struct WorkersJob {
  const codelets::MatMulKernel& kernel;
  TileLoad load;
  std::int64_t records = 1;         // buckets that hold a piece of the cell
  std::int64_t z = 0, z_grain = 1;  // batch of the tile in grains, and columns of a grain
};

// Returns the cycles of the workers: their number times the sum, over `records` equal pieces of the
// load, of the cycles of the slowest worker of each piece. The sum is of the slowest ones because
// workers wait for each other at the end of every record.
std::int64_t workers_cycles(const WorkersJob& job);

// Evaluates the formula at the mean counts of the load, rounded up.
std::int64_t cycles_at(const codelets::LinearCycles& formula, const TileLoad& load);

// Returns the mean of ceil(n / hands), where n is the number of non-zeros of a row and each of the
// `columns` is filled with probability `density`. It is the share of the busiest of `hands` workers
// if the non-zeros of a row are dealt to them in turn.
double mean_hand(double columns, double density, std::int64_t hands);

}  // namespace tessera::planner::internal
