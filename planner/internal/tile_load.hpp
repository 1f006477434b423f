#pragma once

#include <cstdint>

#include "tessera/codelets/cost/matmul_cycles.hpp"
#include "tessera/planner/internal/layout.hpp"

namespace tessera::planner::internal {

// Returns the expected number of `lines` with at least one of `places` filled, each with
// probability `density`.
double filled(double lines, double density, double places);

// Returns the load of a cell of share.x rows and share.y columns that holds `blocks`, where the
// other cells are filled as `scatter` describes.
TileLoad cell_load(Dims share, double blocks, const Scatter& scatter);

// Returns the load of the transposed cell: its rows are the columns of R.
TileLoad swapped(const TileLoad& load);

// Evaluates the formula at the mean counts of the load, rounded up.
std::int64_t cycles_at(const codelets::LinearCycles& formula, const TileLoad& load);

// Returns the mean of ceil(n / hands), where n is the number of non-zeros of a row and each of the
// `columns` is filled with probability `density`. It is the share of the busiest of `hands` workers
// if the non-zeros of a row are dealt to them in turn.
double mean_hand(double columns, double density, std::int64_t hands);

}  // namespace tessera::planner::internal
