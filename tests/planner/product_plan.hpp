#pragma once

#include "tessera/planner/matmul.hpp"
#include "tessera/planner/planner.hpp"

namespace tessera::test {

// Returns the cheapest plan of a product. Throws the errors of plan_or_throw.
inline planner::MatMulPlan product_plan(const MatMulProblem& problem,
                                        const device::Machine& machine,
                                        const planner::Options& options = {}) {
  return planner::matmul_plan(problem, planner::plan_or_throw(layer_of(problem), machine, options),
                              machine);
}

}  // namespace tessera::test
