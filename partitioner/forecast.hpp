#pragma once

#include "tessera/partitioner/tile_grid.hpp"

namespace tessera::partitioner {

// Forecasts for patterns that are not known yet, from capacities and density. A random pattern has
// exactly round(density * places) blocks, with every choice of that many places equally likely
// (sparse::random_pattern); `density` is stored blocks / all blocks.

// Returns the probability that some bucket cannot hold all of its own piece, all workers counted,
// so that encode() has to move blocks or finds a misfit.
//
// This is a model: the blocks of a cell follow their exact distribution; the rows (columns) in use
// follow a normal distribution of the correct mean and variance; buckets are treated as
// independent. Against simulation it is off by a few hundredths in the middle, and by less than
// that in the tails.
//
// Throws Error{InvalidArgument} for an impossible grid, or a density outside [0, 1]. O(sqrt(blocks
// of a cell)). Thread-safe.
double spill_probability(const TileGrid& grid, double density);

// Returns the smallest factor, in hundredths, for which spill_probability(with_capacity(grid,
// factor), density) is at most `wanted`. It may be below 1. The slack over capacities that just
// hold the mean is this factor less 1. Throws Error{InvalidArgument} unless `wanted` is in (0, 1).
// Costs about twenty times as much as spill_probability().
double capacity_factor_for(const TileGrid& grid, double density, double wanted);

}  // namespace tessera::partitioner
