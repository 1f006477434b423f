#pragma once

#include <cstdint>
#include <vector>

#include "tessera/base/dims.hpp"
#include "tessera/partitioner/buckets.hpp"

namespace tessera::runtime {

// The distance of travelling data from their home: at displacement (x, y, z), the tile at (i, j, k)
// holds the data that started at (i - x, j - y, k - z), cyclically.
struct Displacement {
  std::int64_t x = 0, y = 0, z = 0;
  friend bool operator==(const Displacement&, const Displacement&) = default;
};

// One step of propagation: all data move by one along an axis, then tiles compute if `compute` is
// set.
struct PropagationStep {
  Axis shift = Axis::Z;  // the first step goes to its displacement at once, from the home buckets
  Displacement after;
  bool compute = false;
};

// The visits that distribution has already made, which propagation leaves out.
//   AllOfZ   all buckets of the tile's own cell, for every z (Fwd, GradA); data travel along z too
//   OwnZ     only the tile's own bucket (GradW with travelling buckets)
//   NoZ      the tile's own cell; data do not travel along z, and every step serves all of it
//            (GradW with travelling operands)
enum class Served { AllOfZ, OwnZ, NoZ };

// Writes the steps that visit every displacement still needed exactly once, by shifts of +1 only.
// The loop over x is outermost and the one over z innermost; x distances that hold no spilled
// blocks are passed without a visit, and no shift follows the last visit. The list is empty if no
// visit is left. Example: splits {1, 1, 3, 1}, y_end {2}, AllOfZ: one step, which loads at (0, 1,
// 0) and computes.
void propagation_steps(const partitioner::Travel& travel, Dims splits, Served served,
                       std::vector<PropagationStep>& steps);

// Writes the shifts of +1 that bring the data home from a displacement.
void return_home(Displacement from, Dims splits, std::vector<PropagationStep>& steps);

}  // namespace tessera::runtime
