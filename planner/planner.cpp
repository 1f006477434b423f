#include "tessera/planner/planner.hpp"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "tessera/base/error.hpp"
#include "tessera/planner/internal/planner_search.hpp"

namespace tessera::planner {
namespace internal {
namespace {

PlanCost plan_cost(const Estimate& e) {
  PlanCost cost{Cycles(e.cycles), Bytes(e.temp), Bytes(e.resident), {}};
  for (std::size_t p = 0; p < e.pass_count; ++p) {
    PassCost pass{e.passes[p].pass, {}};
    for (std::size_t s = 0; s < e.passes[p].count; ++s) {
      const Step& step = e.passes[p].steps[s];
      pass.terms.push_back({step.name, Cycles(step.cycles), Bytes(step.temp)});
    }
    cost.passes.push_back(std::move(pass));
  }
  return cost;
}

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
  plan.use_dense = c.candidate.dense || (c.quirks().never_chooses_dense &&
                                         c.options.constraints.use_dense.value_or(false));
  plan.nonzeros_per_bucket = bucket.values;
  plan.fwd_meta_words = Words(bucket.fwd_words);
  plan.grad_a_meta_words = Words(bucket.grad_a_words);
  plan.cost = plan_cost(estimate(c, cut, bucket));
  return plan;
}

// Cheapest over all candidates under one bound; a later candidate must be strictly better.
PlanResult search_all(const std::vector<Case>& cases, std::int64_t temp_bound, Search search) {
  PlanResult result;
  SearchBounds bounds{temp_bound, kUnbounded, kUnbounded, cases.front().options.search_limit};
  const Case* best_case = nullptr;
  Dims best_parts;
  for (const Case& c : cases) {
    const SearchOutcome outcome = search(c, bounds);
    result.evaluations += outcome.evaluations;
    bounds.examined -= outcome.examined;
    if (outcome.found) {
      best_case = &c;
      best_parts = outcome.parts;
      bounds.cycles = outcome.cycles;
      bounds.best_temp = outcome.temp;
    }
    if (outcome.limit_reached) result.status = PlanStatus::LimitReached;
  }
  if (best_case != nullptr) {
    result.has_plan = true;
    result.plan = make_plan(*best_case, best_parts);
    if (result.status != PlanStatus::LimitReached) result.status = PlanStatus::Found;
  }
  result.memory_bound = Bytes(temp_bound);
  return result;
}

// The bounds that are tried one after the other until there is a plan.
std::vector<std::int64_t> temp_bounds(const device::Machine& machine, const Options& options) {
  const std::int64_t tile = machine.tile_memory.value;
  auto bound = static_cast<std::int64_t>(
      std::floor(static_cast<double>(tile) * options.available_memory_proportion));
  if (!options.quirks.double_memory_bound) return {bound};
  std::vector<std::int64_t> bounds;
  do bounds.push_back(bound);
  while ((bound *= 2) < 2 * tile);
  bounds.push_back(kUnbounded);
  return bounds;
}

Shortfall nearest(const std::vector<Case>& cases) {
  Shortfall nearest;
  for (const Case& c : cases) {
    const Shortfall one = shortfall(c);
    nearest.any_partition |= one.any_partition;
    nearest.any_words_fit |= one.any_words_fit;
    nearest.least_temp = std::min(nearest.least_temp, one.least_temp);
    nearest.least_total = std::min(nearest.least_total, one.least_total);
  }
  return nearest;
}

std::string obstacle(const Case& c, const Shortfall& near, Bytes bound) {
  const std::int64_t tile = c.machine.tile_memory.value;
  if (!near.any_partition) return "the pinned counts fit no partition; pin fewer of them";
  if (!near.any_words_fit)
    return fmt::format(
        "every partition needs bucket words of more than {} bits; use more tiles, a smaller batch "
        "or a machine with wider words",
        c.machine.word_bits);
  if (near.least_temp > bound.value)
    return fmt::format(
        "at least {} bytes of temporary memory per tile are needed and {} are allowed "
        "(availableMemoryProportion {}); raise it, use more tiles or a smaller batch",
        near.least_temp, bound.value, c.options.available_memory_proportion);
  return fmt::format(
      "at least {} bytes per tile are needed for resident and temporary data together and a tile "
      "has {}; use more tiles or a smaller batch",
      near.least_total, tile);
}

void explain_failure(const std::vector<Case>& cases, PlanResult& result) {
  const Case& c = cases.front();
  const Shortfall near = nearest(cases);
  result.least_temp = Bytes(near.least_temp == kUnbounded ? 0 : near.least_temp);
  result.reason = fmt::format("no plan for {} on {} ({} tiles of {} bytes): {}",
                              to_string(c.problem), c.machine.name, c.machine.tiles,
                              c.machine.tile_memory.value, obstacle(c, near, result.memory_bound));
}

}  // namespace

PlanResult plan_with(const Problem& problem, const device::Machine& machine, const Options& options,
                     const PatternStats* stats, Search search) {
  check_request(problem, machine, options, stats);
  std::optional<PatternSize> size;
  if (stats != nullptr) {
    const BlockShape used =
        problem.is_element_wise() ? problem.block : block_to_use(problem.block, problem.data_type);
    size = pattern_size(*stats, used, std::min(machine.tiles, problem.size.y));
  }
  std::vector<Case> cases;
  for (const Candidate& candidate : candidates(problem, machine, options))
    cases.push_back(make_case(problem, machine, options, candidate, size ? &*size : nullptr));
  check_pins(cases);

  PlanResult result;
  std::int64_t evaluations = 0;
  for (const std::int64_t bound : temp_bounds(machine, options)) {
    result = search_all(cases, bound, search);
    evaluations += result.evaluations;
    result.evaluations = evaluations;
    if (result.has_plan || result.status == PlanStatus::LimitReached) return result;
  }
  explain_failure(cases, result);
  return result;
}

}  // namespace internal

PlanResult plan(const Problem& problem, const device::Machine& machine, const Options& options,
                const PatternStats* stats) {
  const PlanConstraints& pins = options.constraints;
  if (problem.density == 0 && !pins.x && !pins.y && !pins.z) {
    Options on_one_tile = options;
    on_one_tile.constraints.x = on_one_tile.constraints.y = on_one_tile.constraints.z = 1;
    PlanResult result =
        internal::plan_with(problem, machine, on_one_tile, stats, internal::search_with_solver);
    if (result.status == PlanStatus::Found) return result;
  }
  return internal::plan_with(problem, machine, options, stats, internal::search_with_solver);
}

Plan plan_or_throw(const Problem& problem, const device::Machine& machine, const Options& options,
                   const PatternStats* stats) {
  PlanResult result = plan(problem, machine, options, stats);
  if (result.has_plan) return std::move(result.plan);
  throw Error(ErrorCode::NoSolution, result.reason);
}

}  // namespace tessera::planner
