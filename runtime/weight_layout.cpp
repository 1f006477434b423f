#include "tessera/runtime/internal/weight_layout.hpp"

#include <fmt/format.h>

#include "tessera/base/error.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/runtime/internal/visit.hpp"

namespace tessera::runtime::internal {

PassSpec spec_of(const Problem& problem, const planner::Plan& plan,
                 const partitioner::TileGrid& grid, Pass pass) {
  const auto method = pass == Pass::Fwd     ? plan.fwd
                      : pass == Pass::GradA ? plan.grad_a
                                            : plan.grad_w;
  return {grid, problem.size.g, method, problem.partials_type, plan.operand_placement};
}

partitioner::TileGrid checked_grid(const Problem& problem, const planner::Plan& plan,
                                   const device::Machine& machine) {
  check_problem(problem);
  if (plan.partition.g != problem.size.g)
    throw_invalid(fmt::format("the plan is for {} groups, but the layer has {}; plan it again",
                              plan.partition.g, problem.size.g));
  const partitioner::TileGrid grid = tile_grid(problem, plan, machine);
  partitioner::check(grid);
  return grid;
}

WeightLayout::WeightLayout(const Problem& of, const planner::Plan& of_layout,
                           const device::Machine& machine, Executor& executor)
    : problem(of),
      plan(of_layout),
      grid(checked_grid(of, of_layout, machine)),
      load_cost(internal::load_cost(spec(Pass::Fwd), machine)),
      weights(of, grid, executor) {}

GradWExchange WeightLayout::grad_w_exchange() const {
  return plan.grad_w_exchange_buckets ? GradWExchange::Buckets : GradWExchange::Inputs;
}

Bytes WeightLayout::word_bytes() const {
  return Bytes((grid.meta_words + grid.grad_a_words) * grid.word_bits / 8);
}

Bytes WeightLayout::value_bytes() const {
  return Bytes(grid.blocks * grid.block.area() * bytes_of(grid.data_type));
}

}  // namespace tessera::runtime::internal
