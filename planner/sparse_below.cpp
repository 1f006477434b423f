#include "tessera/planner/sparse_below.hpp"

#include <algorithm>
#include <optional>

#include "tessera/base/float_mode.hpp"
#include "tessera/planner/internal/bound_search.hpp"
#include "tessera/planner/internal/two_layouts.hpp"
#include "tessera/planner/layouts.hpp"

namespace tessera::planner {
namespace {

using internal::Asked;
using internal::Case;
using internal::CaseSet;

// Returns a plan with buckets that costs fewer than `cycles`, if there is one.
std::optional<Plan> plan_below(std::int64_t cycles, const Asked& asked) {
  if (asked.problem.density == 0) {
    PlanResult result = internal::plan_with_buckets(asked);
    if (!result.has_plan || result.plan.cost.cycles.value >= cycles) return {};
    return std::move(result.plan);
  }
  const CaseSet set = internal::make_cases(asked);
  const internal::Ranking any = internal::rank_plans(set.cases, internal::rank_by_bounds,
                                                     {.fewer_than = cycles, .any = true});
  if (!any.cheapest.empty())
    return internal::make_plan(*any.cheapest.front().of, any.cheapest.front().at.parts);
  PlanResult two = internal::plan_two_layouts(asked, cycles);
  if (!two.has_plan) return {};
  return std::move(two.plan);
}

bool has_methods_of(const Case& c, const Plan& plan) {
  const internal::Candidate& methods = c.candidate;
  return methods.fwd == plan.fwd && methods.grad_a == plan.grad_a &&
         methods.grad_w == plan.grad_w && methods.grain == plan.grain &&
         c.problem.block == plan.block && methods.dense == plan.use_dense &&
         methods.exchange_buckets == plan.grad_w_exchange_buckets;
}

// Returns the plan of one layout of a problem with the methods and the partition of another plan.
std::optional<Plan> layout_like(const Plan& plan, const Problem& problem, const Asked& asked) {
  const CaseSet set = internal::make_cases({problem, asked.machine, asked.options});
  const auto with_methods =
      std::ranges::find_if(set.cases, [&plan](const Case& c) { return has_methods_of(c, plan); });
  if (with_methods == set.cases.end() ||
      !internal::partition_is_legal(*with_methods, plan.partition))
    return {};
  const internal::PartsCost cost = internal::cost_of(*with_methods, plan.partition);
  const std::int64_t bound = internal::temp_bounds(asked.machine, asked.options).front();
  if (!cost.legal || cost.temp > bound) return {};
  return internal::make_plan(*with_methods, plan.partition);
}

// Returns the cycles of a problem under the methods and the partitions of another plan; kMostCycles
// if it has no such plan.
Cycles cycles_like(const Plan& plan, const Asked& asked) {
  if (plan.backward.empty()) {
    const auto same = layout_like(plan, asked.problem, asked);
    return same ? same->cost.cycles : kMostCycles;
  }
  const auto [here, there] = two_problems(asked.problem, plan.runs_transposed(Pass::GradW));
  const auto forward = layout_like(plan, here, asked);
  const auto backward = layout_like(plan.backward.front(), there, asked);
  if (!forward || !backward) return kMostCycles;
  const Bytes bound(internal::temp_bounds(asked.machine, asked.options).front());
  const auto both = internal::joined(*forward, *backward, asked.problem, asked.machine, bound);
  return both ? both->cost.cycles : kMostCycles;
}

}  // namespace

std::optional<Plan> sparse_plan_below(Cycles cycles, const Problem& problem,
                                      const device::Machine& machine, const Options& options,
                                      const PatternStats* stats) {
  const DefaultFloatMode mode;
  return plan_below(std::max(cycles.value, std::int64_t{0}), {problem, machine, options, stats});
}

std::int64_t highest_step_like(const Plan& like, Cycles cycles, const Problem& problem,
                               const device::Machine& machine, const Options& options,
                               std::int64_t from) {
  const DefaultFloatMode mode;
  if (like.dense) return from;
  Asked asked{problem, machine, options, nullptr};
  // More blocks never cost less under the same plan.
  std::int64_t low = from, high = kDensitySteps + 1;
  while (high - low > 1) {
    const std::int64_t step = (low + high) / 2;
    asked.problem.density = double(step) / double(kDensitySteps);
    (cycles_like(like, asked) < cycles ? low : high) = step;
  }
  return low;
}

}  // namespace tessera::planner
