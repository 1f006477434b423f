#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/base/units.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/planner/network.hpp"
#include "tessera/planner/plan.hpp"

// The planned cost of the work in a network's program beside the passes of its layers. Each cost is
// that of the slowest tile with the barriers and launches of the steps, as the runtime runs them;
// in a hand-over a tile moves what it does not hold already. Starts of receiving
// (Machine::receive_start) are not included, so hand-overs cost more where that is not 0. Plans
// have one layout or two, and operands at home.
namespace tessera::planner {

// The planned cycles of one kind of work for one layer, counted from 0.
struct WorkCost {
  NetworkWork work = NetworkWork::Fwd;
  std::int64_t layer = 0;
  Cycles cycles;

  friend bool operator==(const WorkCost&, const WorkCost&) = default;
};

// Returns the cost of the work of a layer that does not depend on the plans of its neighbours, in
// running order; the hand-over is that of a gradient from the tiles of the result to those of the
// operand. The last layer also has the loss, with the hand-overs to it and from it.
std::vector<WorkCost> layer_work(const NetworkSpec& spec, std::int64_t layer, const Plan& plan,
                                 const device::Machine& machine);

// Returns the cycles of the hand-overs between a layer and the next one: of the result and, in a
// training step, of its gradient.
Cycles link_cycles(const NetworkSpec& spec, std::int64_t layer, const Plan& plan, const Plan& next,
                   const device::Machine& machine);

// Returns the cycles of the hand-overs of a layer that stands alone, whose plan has operands spread
// evenly (Placement::EvenSpread): results go from the tiles that add them up to that spread, and so
// does the gradient of the loss in the last layer.
Cycles spread_hand_over_cycles(const NetworkSpec& spec, std::int64_t layer, const Plan& plan,
                               const device::Machine& machine);

// Returns the memory of the fullest tile that a layer needs during the whole step: its buckets,
// operands and results, and the states of its optimiser.
Bytes resident_bytes(const NetworkSpec& spec, std::int64_t layer, const Plan& plan);

}  // namespace tessera::planner
