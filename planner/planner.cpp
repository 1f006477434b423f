#include "tessera/planner/planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>

#include "tessera/base/error.hpp"
#include "tessera/base/float_mode.hpp"
#include "tessera/planner/internal/bound_search.hpp"
#include "tessera/planner/internal/dense_layer.hpp"
#include "tessera/planner/internal/nearest.hpp"
#include "tessera/planner/internal/planner_search.hpp"
#include "tessera/planner/internal/two_layouts.hpp"

namespace tessera::planner {
namespace internal {
namespace {

PlanCost plan_cost(const Estimate& e) {
  PlanCost cost{.resident = Bytes(e.resident)};
  for (std::size_t p = 0; p < e.pass_count; ++p) {
    PassCost pass{e.passes[p].pass, {}};
    for (std::size_t s = 0; s < e.passes[p].count; ++s) {
      const Step& step = e.passes[p].steps[s];
      pass.terms.push_back({step.term, Cycles(step.cycles), Bytes(step.temp)});
    }
    cost.add(std::move(pass));
  }
  return cost;
}

}  // namespace

Plan make_plan(const Case& c, Dims parts) {
  const Cut cut = make_cut(c, parts);
  const BucketSize bucket = bucket_size(c, cut);
  Plan plan;
  plan.fwd = c.candidate.fwd;
  plan.grad_a = c.candidate.grad_a;
  plan.grad_w = c.candidate.grad_w;
  plan.block = c.problem.block;
  plan.grain = c.candidate.grain;
  plan.partition = parts;
  plan.grad_w_exchange_buckets = c.candidate.exchange_buckets;
  plan.use_dense =
      c.candidate.dense || (c.parity() && c.options.constraints.use_dense.value_or(false));
  plan.operand_placement = c.options.operand_placement;
  plan.nonzeros_per_bucket = bucket.values;
  plan.fwd_meta_words = Words(bucket.fwd_words);
  plan.grad_a_meta_words = Words(bucket.grad_a_words);
  plan.cost = plan_cost(estimate(c, cut, bucket));
  return plan;
}

void check_memory_share(double share) {
  if (!(share > 0 && share <= 1))
    throw_invalid(fmt::format("availableMemoryProportion is {}; it must be in (0, 1]", share));
}

std::int64_t temp_bound(const device::Machine& machine, double share) {
  return std::int64_t(std::floor(double(machine.tile_memory.value) * share));
}

std::string too_small_text(const device::Machine& machine, double share, std::int64_t least_bytes) {
  return fmt::format(
      "a tile needs {} bytes at least and has {}, of which temporary data may take {:.0f} %",
      least_bytes, machine.tile_memory.value, 100 * share);
}

std::vector<std::int64_t> temp_bounds(const device::Machine& machine, const Options& options) {
  const std::int64_t tile = machine.tile_memory.value;
  std::int64_t bound = temp_bound(machine, options.available_memory_proportion);
  if (!options.poplibs_parity) return {bound};
  std::vector<std::int64_t> bounds;
  do bounds.push_back(bound);
  while ((bound *= 2) < 2 * tile);
  bounds.push_back(kUnbounded);
  return bounds;
}

namespace {

std::string obstacle(const Case& c, const std::vector<Nearness>& nears, const PlanResult& result) {
  const auto any = [&nears](auto member) { return std::ranges::any_of(nears, member); };
  if (!any([](const Nearness& near) { return near.parts.has_value(); }))
    return "the pinned counts fit no partition; pin fewer of them";
  const std::size_t nearest = nearest_of(nears);
  const std::string need = to_string(obstacle_of(c, nears[nearest], result.memory_bound.value));
  if (!any(&Nearness::any_words_fit))
    return fmt::format(
        "every partition needs bucket words of more than {} bits, at best {}; use more tiles, a "
        "smaller batch or a machine with wider words",
        c.machine.word_bits, need);
  if (result.least_temp > result.memory_bound)
    return fmt::format(
        "at least {} bytes of temporary memory per tile are needed and {} are allowed "
        "(availableMemoryProportion {}), nearest is {}; raise it, use more tiles or a smaller "
        "batch",
        result.least_temp.value, result.memory_bound.value, c.options.available_memory_proportion,
        need);
  return fmt::format(
      "no partition keeps all limits, nearest is {}; use more tiles or a smaller batch", need);
}

// Leaves out the dense candidates: their needs say little about a sparse layer, and take as long to
// compute.
std::vector<Case> sparse_ones(const std::vector<Case>& cases) {
  std::vector<Case> sparse;
  std::copy_if(cases.begin(), cases.end(), std::back_inserter(sparse),
               [](const Case& c) { return !c.candidate.dense; });
  return sparse.empty() ? cases : sparse;
}

void explain_failure(const std::vector<Case>& all, PlanResult& result) {
  const std::vector<Case> cases = sparse_ones(all);
  const Case& c = cases.front();
  std::vector<Nearness> nears;
  std::int64_t least_temp = kUnbounded;
  for (const Case& one : cases) {
    nears.push_back(nearness(one, result.memory_bound.value));
    least_temp = std::min(least_temp, nears.back().least_temp);
  }
  result.least_temp = Bytes(least_temp == kUnbounded ? 0 : least_temp);
  result.reason = fmt::format("no plan for {}: {}", request_text(c.problem, c.machine),
                              obstacle(cases[nearest_of(nears)], nears, result));
}

}  // namespace

CaseSet make_cases(const Asked& asked) {
  const auto& [problem, machine, options, stats] = asked;
  check_request(problem, machine, options, stats);
  CaseSet set;
  if (stats != nullptr) {
    const BlockShape used =
        problem.is_element_wise() ? problem.block : block_to_use(problem.block, problem.data_type);
    set.pattern = std::make_unique<PatternSize>(pattern_size(*stats, used));
  }
  for (const Candidate& candidate : candidates(problem, machine, options))
    set.cases.push_back(make_case(problem, machine, options, candidate, set.pattern.get()));
  check_pins(set.cases);
  return set;
}

Ranking rank_plans(const std::vector<Case>& cases, Search search, const Wanted& wanted) {
  Ranking ranking;
  std::int64_t evaluations = 0;
  for (const std::int64_t bound : temp_bounds(cases.front().machine, cases.front().options)) {
    ranking = search(cases, bound, wanted);
    evaluations += ranking.evaluations;
    ranking.evaluations = evaluations;
    if (!ranking.cheapest.empty() || ranking.limit_reached) break;
  }
  return ranking;
}

PlanResult find_plan(const std::vector<Case>& cases, Search search, std::int64_t fewer_than) {
  const Ranking ranking = rank_plans(cases, search, {.fewer_than = fewer_than});
  PlanResult result;
  result.evaluations = ranking.evaluations;
  result.memory_bound = ranking.memory_bound;
  if (!ranking.cheapest.empty()) {
    const RankedPlan& best = ranking.cheapest.front();
    result.has_plan = true;
    result.plan = make_plan(*best.of, best.at.parts);
    result.status = PlanStatus::Found;
  }
  if (ranking.limit_reached) result.status = PlanStatus::LimitReached;
  return result;
}

namespace {

// A request without a plan has no reason yet: explain() prices all partitions to find it, which is
// in vain if another kind of plan is found.
PlanResult find_with(const Asked& asked, Search search, std::int64_t fewer_than) {
  return find_plan(make_cases(asked).cases, search, fewer_than);
}

// With a limit of cycles, a plan that is not found has no reason.
void explain(const Asked& asked, std::int64_t fewer_than, PlanResult& result) {
  if (fewer_than != kUnbounded || result.has_plan) return;
  if (result.status == PlanStatus::LimitReached)
    result.reason = fmt::format("no plan for {} was found within searchLimit {}; raise it",
                                to_string(asked.problem), asked.options.search_limit);
  if (result.status != PlanStatus::NoPlan) return;
  explain_failure(make_cases(asked).cases, result);
}

}  // namespace

PlanResult plan_with(const Asked& asked, Search search, std::int64_t fewer_than) {
  PlanResult result = find_with(asked, search, fewer_than);
  explain(asked, fewer_than, result);
  return result;
}

namespace {

PlanResult find_with_buckets(const Asked& asked, std::int64_t fewer_than) {
  const PlanConstraints& pins = asked.options.constraints;
  if (asked.problem.density == 0 && !pins.x && !pins.y && !pins.z) {
    Options on_one_tile = asked.options;
    on_one_tile.constraints.x = on_one_tile.constraints.y = on_one_tile.constraints.z = 1;
    PlanResult result = find_with(asked.with(on_one_tile), rank_by_bounds, fewer_than);
    if (result.status == PlanStatus::Found) return result;
  }
  PlanResult one = find_with(asked, rank_by_bounds, fewer_than);
  if (one.status == PlanStatus::LimitReached) return one;
  const std::int64_t to_beat = one.has_plan ? one.plan.cost.cycles.value : fewer_than;
  PlanResult two = plan_two_layouts(asked, to_beat);
  PlanResult& best = two.has_plan ? two : one;  // a pair that is found costs less
  best.evaluations = one.evaluations + two.evaluations;
  if (two.status == PlanStatus::LimitReached) best.status = two.status;
  return std::move(best);
}

}  // namespace

PlanResult plan_with_buckets(const Asked& asked, std::int64_t fewer_than) {
  PlanResult result = find_with_buckets(asked, fewer_than);
  explain(asked, fewer_than, result);
  return result;
}

namespace {

// Returns the cheaper plan for useDense, without buckets or with R in large blocks. Large blocks
// are rarely cheaper, but a pinned count asks for them, and a request without that pin must cost no
// more.
PlanResult plan_dense_either_way(const Asked& asked, std::int64_t fewer_than) {
  PlanResult dense = plan_without_buckets(asked, fewer_than);
  const std::int64_t to_beat = dense.has_plan ? dense.plan.cost.cycles.value : fewer_than;
  PlanResult blocks = find_with_buckets(asked, to_beat);
  if (!blocks.has_plan && !dense.has_plan) explain(asked, fewer_than, blocks);
  PlanResult& best = blocks.has_plan || !dense.has_plan ? blocks : dense;
  best.evaluations = dense.evaluations + blocks.evaluations;
  return std::move(best);
}

}  // namespace

PlanResult plan_fewer(const Asked& asked, std::int64_t fewer_than) {
  const DefaultFloatMode mode;
  const Options& options = asked.options;
  if (wants_no_buckets(options)) return plan_dense_either_way(asked, fewer_than);
  PlanResult buckets = find_with_buckets(asked, fewer_than);
  const bool is_open = !options.constraints.use_dense && may_have_no_buckets(options);
  // There is nothing to multiply.
  const bool is_empty = asked.problem.density == 0 && buckets.has_plan;
  if (!is_open || is_empty || buckets.status == PlanStatus::LimitReached) {
    explain(asked, fewer_than, buckets);
    return buckets;
  }
  const std::int64_t to_beat =
      buckets.has_plan ? buckets.plan.cost.cycles.value : std::min(fewer_than, kAnyCycles);
  PlanResult dense = plan_without_buckets(asked, to_beat);
  if (!dense.has_plan) explain(asked, fewer_than, buckets);
  PlanResult& best = dense.has_plan ? dense : buckets;
  best.evaluations = buckets.evaluations + dense.evaluations;
  return std::move(best);
}

}  // namespace internal

PlanResult plan(const Problem& problem, const device::Machine& machine, const Options& options,
                const PatternStats* stats) {
  return internal::plan_fewer({problem, machine, options, stats}, internal::kUnbounded);
}

Plan plan_or_throw(const Problem& problem, const device::Machine& machine, const Options& options,
                   const PatternStats* stats) {
  PlanResult result = plan(problem, machine, options, stats);
  if (result.has_plan) return std::move(result.plan);
  throw Error(ErrorCode::NoSolution, result.reason);
}

}  // namespace tessera::planner
