#pragma once

#include <cstdint>

#include "tessera/codelets/cost/matmul_cycles.hpp"
#include "tessera/planner/internal/layout.hpp"

namespace tessera::planner::internal {

// A cell of that share, rows x columns, that holds `blocks`, among others as in `scatter`.
TileLoad cell_load(Dims share, double blocks, const Scatter& scatter);
// Rows are the columns of R.
TileLoad swapped(const TileLoad& load);

// workers * the sum over `records` equal pieces of a load of what each piece's slowest worker
// takes: workers meet at the end of every record. z is the columns of the batch on the tile, in
// grains.
struct WorkersJob {
  const codelets::MatMulKernel& kernel;
  TileLoad load;
  std::int64_t records = 1;  // buckets that hold a piece of the cell
  std::int64_t z = 0, z_grain = 1;
};
std::int64_t workers_cycles(const WorkersJob& job);
// The formula at mean counts, rounded up.
std::int64_t cycles_at(const codelets::LinearCycles& formula, const TileLoad& load);

// Mean of ceil(n / hands) for n non-zeros of a row that all `columns` have with probability
// `density`: what the busiest hand gets when non-zeros are dealt in turn.
double mean_hand(double columns, double density, std::int64_t hands);

}  // namespace tessera::planner::internal
