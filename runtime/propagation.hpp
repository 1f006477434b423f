#pragma once

#include <cstdint>
#include <vector>

#include "tessera/base/dims.hpp"
#include "tessera/partitioner/buckets.hpp"

namespace tessera::runtime {

// How far the travelling data are from where they started: after a displacement (x, y, z) the tile
// at (i, j, k) sees what began at (i - x, j - y, k - z), cyclically.
struct Displacement {
  std::int64_t x = 0, y = 0, z = 0;
  friend bool operator==(const Displacement&, const Displacement&) = default;
};

// One step of propagation: move everything by one along an axis, then perhaps compute.
struct PropagationStep {
  Axis shift = Axis::Z;  // the first step loads its displacement at once, from the home buckets
  Displacement after;
  bool compute = false;
};

// Which visits are left to propagation.
//   AllOfZ   distribution has served every z of the own cell (Fwd, GradA); z still travels
//   OwnZ     distribution has served only the own bucket (GradW, buckets travel)
//   NoZ      z does not travel: every step serves all of it (GradW, operands travel)
enum class Served { AllOfZ, OwnZ, NoZ };

// The steps that visit every displacement still needed exactly once, by shifts of +1 only: x
// outermost, x distances that hold nothing are passed without a visit, y inside, z innermost. There
// is no shift after the last visit. Empty when nothing is left to visit.
// Example: splits {1, 1, 3, 1}, y_end {2}, AllOfZ: one step, loaded at (0, 1, 0), computing.
std::vector<PropagationStep> propagation_steps(const partitioner::Travel& travel, Dims splits,
                                               Served served);
// The same in the storage of `steps`.
void propagation_steps(const partitioner::Travel& travel, Dims splits, Served served,
                       std::vector<PropagationStep>& steps);

// Shifts that bring the data home from a displacement.
std::vector<PropagationStep> return_home(Displacement from, Dims splits);
void return_home(Displacement from, Dims splits, std::vector<PropagationStep>& steps);

}  // namespace tessera::runtime
