#pragma once

#include "tessera/partitioner/tile_grid.hpp"

namespace tessera::partitioner {

// What capacities and density say about patterns that nobody has seen yet. A random pattern has
// exactly round(density * places) blocks, every choice of that many places equally likely
// (sparse::random_pattern); `density` is blocks stored / all blocks.

// The probability that some bucket cannot hold all of its own piece, all workers counted, so that
// encode() has to move blocks or finds a misfit.
// A model: the blocks of a cell follow their exact distribution; rows (columns) in use follow a
// normal one of the right mean and variance; buckets do not know of each other. Against simulation
// it is off by a few hundredths in the middle, and by less than that in the tails.
// Error{InvalidArgument} for a bad grid, or a density outside [0, 1]. O(sqrt(blocks of a cell)).
// Thread-safe.
double spill_probability(const TileGrid& grid, double density);

// The least factor, in hundredths, for which spill_probability(with_capacity(grid, factor),
// density) is at most `wanted`, which must lie in (0, 1), else Error{InvalidArgument}. May be below
// 1. The slack over capacities that just hold the mean is this factor less 1.
// Some twenty times the cost of spill_probability.
double capacity_factor_for(const TileGrid& grid, double density, double wanted);

}  // namespace tessera::partitioner
