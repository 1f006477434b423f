#include "tessera/planner/internal/two_layouts.hpp"

#include <algorithm>
#include <utility>

#include "tessera/base/pass.hpp"
#include "tessera/planner/layouts.hpp"

namespace tessera::planner::internal {
namespace {

bool may_split(const Problem& problem, const Options& options) {
  const PlanConstraints& pins = options.constraints;
  const bool pinned = pins.x || pins.y || pins.z || options.shared_buckets;
  return problem.grad_a && !pinned && !options.poplibs_parity && options.per_pass_plans;
}

PassCost grad_a_cost(const Plan& forward, const Plan& backward, const Problem& problem,
                     const device::Machine& machine) {
  PassCost cost = backward.cost.passes.front();
  cost.pass = Pass::GradA;
  const RehomeCost move = rehome_cost(forward, backward, problem, machine);
  cost.terms.insert(cost.terms.begin(), {Term::RehomeValues, move.cycles, move.temp});
  cost.terms.back().cycles += move.overhead;  // barriers and launches
  return cost;
}

// Returns the bytes of the buckets alone, which one layout adds to the tiles of the other.
Bytes bucket_bytes(const Plan& plan, const Problem& problem, const device::Machine& machine) {
  const std::int64_t words = plan.fwd_meta_words.value + plan.grad_a_meta_words.value;
  const std::int64_t values = plan.nonzeros_per_bucket * bytes_of(problem.data_type);
  return Bytes(words * machine.word_bits / 8 + values * (1 + problem.grad_w));
}

}  // namespace

std::optional<Plan> joined(Plan forward, const Plan& backward, const Problem& problem,
                           const device::Machine& machine, Bytes temp_bound) {
  PlanCost cost{{}, {}, {}, {forward.cost.passes.front()}};
  cost.passes.push_back(grad_a_cost(forward, backward, problem, machine));
  if (problem.grad_w) {
    const PassCost* here = forward.cost.find(Pass::GradW);
    cost.passes.push_back(here != nullptr ? *here : *backward.cost.find(Pass::GradW));
  }
  for (const PassCost& pass : cost.passes) {
    cost.cycles += pass.cycles();
    cost.temp = std::max(cost.temp, pass.temp());
  }
  cost.resident = std::max(forward.cost.resident + bucket_bytes(backward, problem, machine),
                           backward.cost.resident + bucket_bytes(forward, problem, machine)) +
                  rehome_cost(forward, backward, problem, machine).table;
  if (cost.temp > temp_bound || cost.temp + cost.resident > machine.tile_memory) return {};
  forward.cost = std::move(cost);
  forward.backward = {backward};
  return forward;
}

PlanResult plan_two_layouts(const Asked& asked, std::int64_t fewer_than, Search search) {
  PlanResult best;
  if (!may_split(asked.problem, asked.options)) return best;
  std::optional<PatternStats> turned;
  if (asked.stats != nullptr) turned = transposed(*asked.stats);
  // Each layout is searched only for plans with fewer cycles than are left for it.
  const auto find = [&](const Problem& problem, const PatternStats* stats, std::int64_t less) {
    const CaseSet set = make_cases(problem, asked.machine, asked.options, stats);
    PlanResult result = find_plan(set.cases, search, less);
    best.evaluations += result.evaluations;
    return result;
  };
  for (const bool grad_w_transposed : {false, true}) {
    if (grad_w_transposed && !asked.problem.grad_w) break;
    const auto [forward_problem, transposed_problem] =
        two_problems(asked.problem, grad_w_transposed);
    const PlanResult forward = find(forward_problem, asked.stats, fewer_than);
    if (forward.status != PlanStatus::Found) continue;
    const std::int64_t left =
        fewer_than == kUnbounded ? kUnbounded : fewer_than - forward.plan.cost.cycles.value;
    const PlanResult backward = find(transposed_problem, turned ? &*turned : nullptr, left);
    if (backward.status != PlanStatus::Found) continue;
    auto plan =
        joined(forward.plan, backward.plan, asked.problem, asked.machine, forward.memory_bound);
    if (!plan || plan->cost.cycles.value >= fewer_than) continue;
    fewer_than = plan->cost.cycles.value;
    best.status = PlanStatus::Found;
    best.has_plan = true;
    best.plan = std::move(*plan);
    best.memory_bound = forward.memory_bound;
  }
  return best;
}

}  // namespace tessera::planner::internal
