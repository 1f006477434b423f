#include "tessera/planner/internal/dense_layer.hpp"

#include <fmt/format.h>

#include <utility>

#include "tessera/planner/internal/nearest.hpp"
#include "tessera/planner/internal/planner_search.hpp"

namespace tessera::planner::internal {
namespace {

Dims dims_of(std::int64_t groups, const ProductShape& shape) {
  return {groups, shape.rows, shape.inner, shape.columns};
}

}  // namespace

bool may_have_no_buckets(const Options& options) {
  const PlanConstraints& pins = options.constraints;
  const bool pins_buckets = pins.x || pins.y || pins.z || pins.grad_w_exchange_buckets;
  // Blocks can be forced out of their buckets only where there are buckets.
  const bool spills = !pins.use_dense && options.partitioner_force_bucket_spills;
  return pins.use_dense.value_or(true) && !pins_buckets && !spills && !options.poplibs_parity &&
         options.operand_placement == Placement::EvenSpread;
}

bool wants_no_buckets(const Options& options) {
  return options.constraints.use_dense.value_or(false) && may_have_no_buckets(options);
}

Plan layer_plan(DensePlan dense) {
  const DensePassPlan& fwd = dense.passes.front();
  Plan plan;
  plan.partition = dims_of(dense.groups, fwd.parts);
  plan.grain = dims_of(1, fwd.grain);
  plan.use_dense = true;
  plan.operand_placement = Placement::EvenSpread;
  plan.cost = dense.cost;
  plan.dense = std::move(dense);
  return plan;
}

PlanResult plan_without_buckets(const Asked& asked, std::int64_t fewer_than) {
  const auto& [problem, machine, options, stats] = asked;
  check_request(problem, machine, options, stats);
  DensePlanResult dense =
      plan_dense_below(problem, machine,
                       {.available_memory_proportion = options.available_memory_proportion,
                        .partials_type = problem.partials_type},
                       fewer_than);
  PlanResult result;
  result.memory_bound = Bytes(temp_bounds(machine, options).front());
  result.evaluations = dense.evaluations;
  if (!dense.plan) {
    if (dense.reason.empty()) return result;
    result.reason = fmt::format("no plan for {}: {}", request_text(problem, machine), dense.reason);
    return result;
  }
  result.status = PlanStatus::Found;
  result.has_plan = true;
  result.plan = layer_plan(*std::move(dense.plan));
  return result;
}

}  // namespace tessera::planner::internal
