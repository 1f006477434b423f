#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/base/movable_state.hpp"
#include "tessera/base/units.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/planner/network.hpp"
#include "tessera/planner/plan.hpp"

// The planned cost of a network's program. Each cost is that of the slowest tile with the barriers
// and launches of the steps, as the runtime runs them.
//
// Results stay on the tiles that added them up, and the first exchange of each pass fetches the
// slices of its operands from there, so the cost of a pass depends on the plans of the layers
// beside it. Starts of receiving (Machine::receive_start) are not included in what is fetched, so
// it costs more where that is not 0.
namespace tessera::planner {

// The planned cycles of one kind of work for one layer, counted from 0.
struct WorkCost {
  NetworkWork work = NetworkWork::Fwd;
  std::int64_t layer = 0;  // of UpdateBiases 0
  Cycles cycles;

  friend bool operator==(const WorkCost&, const WorkCost&) = default;
};

// A layer of a network with one of the plans that it may have: one layout or two with operands at
// home, or a dense plan in one round. An object computes the places of the layer's tensors once,
// for the prices of all links.
class PricedLayer {
 public:
  // The spec, the plan and the machine must outlive the object.
  PricedLayer(const NetworkSpec& spec, std::int64_t layer, const Plan& plan,
              const device::Machine& machine);
  ~PricedLayer();
  PricedLayer(PricedLayer&&) noexcept;

  const Plan& plan() const;

  // Returns the work whose cost does not depend on the plans of the neighbours, and the part of the
  // other work that does not.
  std::vector<WorkCost> own_work() const;

  // Returns what the plan of the next layer adds: its Fwd and GradW fetch the result of this layer;
  // GradA and GradW of this layer fetch the gradient from the tiles on which the next layer's GradA
  // adds it up, and those tiles take the derivative.
  std::vector<WorkCost> link_work(const PricedLayer& next) const;

  // Return the work of the same layers if each is a program of its own that finds its operands at
  // home (Placement::AtHome): an exchange with a barrier of its own hands a tensor over from the
  // tiles that hold it to those that hold the operands of the next pass, and each layer updates its
  // own bias.
  std::vector<WorkCost> apart_work() const;
  std::vector<WorkCost> apart_link_work(const PricedLayer& next) const;

  // Returns the work beside the passes of a layer whose plan has operands spread evenly
  // (Placement::EvenSpread): results go from the tiles that add them up to that spread, and so does
  // the gradient of the loss in the last layer.
  std::vector<WorkCost> spread_work() const;

  // Returns the memory of the fullest tile that the layer needs during the whole step: its buckets,
  // results, and the states of its optimiser.
  Bytes resident() const;

  // Returns the temporary memory of the layer's largest pass.
  Bytes temp() const;

  // Returns the temporary memory that the layer needs while the passes of the next layer run: its
  // results if it recomputes, else nothing.
  Bytes temp_of_next() const;

  struct State;  // internal/priced_layer.hpp

 private:
  MovableState<State> state_;
};

// Returns the sum over the work.
Cycles sum_of(std::span<const WorkCost> work);

}  // namespace tessera::planner
