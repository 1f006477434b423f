#pragma once

#include "tessera/planner/layouts.hpp"
#include "tessera/planner/planner.hpp"

namespace tessera::runtime {

// A layer whose GradA has a layout of its own.
struct TwoLayouts {
  Problem problem;
  planner::Plan plan;
  device::Machine machine;
};

// Both layouts, whether or not one would do.
inline TwoLayouts two_layouts(Problem problem, bool grad_w_there, std::int64_t tiles) {
  problem.grad_a = problem.grad_w = true;
  TwoLayouts two{problem, {}, device::machine_preset("gc200")};
  two.machine.tiles = tiles;
  two.machine.receive_start = Cycles(0);  // more layers are cut in two
  const auto [here, there] = planner::two_problems(problem, grad_w_there);
  planner::Options options;
  options.constraints.use_dense = false;
  two.plan = planner::plan_or_throw(here, two.machine, options);
  two.plan.backward = {planner::plan_or_throw(there, two.machine, options)};
  return two;
}

}  // namespace tessera::runtime
