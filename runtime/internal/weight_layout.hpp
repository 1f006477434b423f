#pragma once

#include "tessera/planner/plan.hpp"
#include "tessera/runtime/internal/grad_w_pass.hpp"
#include "tessera/runtime/internal/layer_weights.hpp"

namespace tessera::runtime::internal {

// Returns the inputs of a pass of a plan with one layout; `grid` is the plan's (tile_grid()).
PassSpec spec_of(const Problem& problem, const planner::Plan& plan,
                 const partitioner::TileGrid& grid, Pass pass);

// Returns the grid of one group of a plan with one layout. Throws Error{InvalidArgument} if the
// plan is not one of the problem on this machine.
partitioner::TileGrid checked_grid(const Problem& problem, const planner::Plan& plan,
                                   const device::Machine& machine);

// One layout of a layer's weights: how a plan cuts them into buckets, and the encoded weights.
struct WeightLayout {
  // `problem` is that of the layout (planner::two_problems); `plan` has its partition and methods.
  // Throws Error{InvalidArgument} if the plan is not one of the problem. The executor must outlive
  // the layout.
  WeightLayout(const Problem& problem, const planner::Plan& plan, const device::Machine& machine,
               Executor& executor);

  // Return the inputs of a pass of this layout, and the data that move in GradW.
  PassSpec spec(Pass pass) const { return spec_of(problem, plan, grid, pass); }
  GradWExchange grad_w_exchange() const;

  // The memory of the words of one bucket, of its values, and of both.
  Bytes word_bytes() const;
  Bytes value_bytes() const;
  Bytes bucket_bytes() const { return word_bytes() + value_bytes(); }

  // The values of all buckets of a group.
  Bytes all_value_bytes() const { return Bytes(grid.buckets() * value_bytes().value); }

  const Problem problem;
  const planner::Plan plan;
  const partitioner::TileGrid grid;       // of one group, checked
  const partitioner::LoadCost load_cost;  // by which the load of Fwd is evened (visit.hpp)
  LayerWeights weights;
};

}  // namespace tessera::runtime::internal
