#include "tessera/tests/planner/enumeration.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "tessera/planner/internal/dense_layer.hpp"
#include "tessera/planner/internal/dense_search.hpp"
#include "tessera/planner/internal/planner_search.hpp"
#include "tessera/planner/internal/two_layouts.hpp"
#include "tessera/planner/layouts.hpp"
#include "tessera/tests/planner/exhaustive_search.hpp"

namespace tessera::planner {
namespace {

// Names a partition. Candidates of one name differ in their cost alone.
using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t, bool>;  // x, y, z, buckets travel

void keep_cheapest(const internal::Case& c, std::int64_t temp_bound,
                   std::map<Key, std::int64_t>& cycles_of) {
  const std::int64_t g = c.grains.g, tiles = c.machine.tiles;
  for (std::int64_t x = 1; g * x <= tiles; ++x)
    for (std::int64_t y = 1; g * x * y <= tiles; ++y)
      for (std::int64_t z = 1; g * x * y * z <= tiles; ++z) {
        if (!internal::partition_is_legal(c, {g, x, y, z})) continue;
        const internal::PartsCost cost = internal::cost_of(c, {g, x, y, z});
        if (!cost.legal || cost.temp > temp_bound) continue;
        const Key key{x, y, z, c.candidate.exchange_buckets};
        const auto [place, is_new] = cycles_of.emplace(key, cost.cycles);
        if (!is_new) place->second = std::min(place->second, cost.cycles);
      }
}

// The plans with the fewest planned cycles, cheapest first, at most `count`.
std::vector<Plan> cheapest_plans(const Problem& problem, const device::Machine& machine,
                                 const Options& options, std::size_t count,
                                 const PatternStats* stats) {
  struct Priced {
    std::int64_t cycles = 0, temp = 0;
    const internal::Case* of = nullptr;
    Dims parts;
  };
  const std::int64_t temp_bound = internal::temp_bounds(machine, options).front();
  const internal::CaseSet set = internal::make_cases({problem, machine, options, stats});
  std::vector<Priced> all;
  for (const internal::Case& c : set.cases)
    internal::visit_partitions(c, [&](Dims parts) {
      const internal::PartsCost cost = internal::cost_of(c, parts);
      if (cost.legal && cost.temp <= temp_bound) all.push_back({cost.cycles, cost.temp, &c, parts});
    });
  std::stable_sort(all.begin(), all.end(), [](const Priced& a, const Priced& b) {
    return std::pair(a.cycles, a.temp) < std::pair(b.cycles, b.temp);
  });
  std::vector<Plan> plans;
  for (const Priced& priced : all) {
    if (plans.size() == count) break;
    Plan plan = internal::make_plan(*priced.of, priced.parts);
    const bool is_known = std::ranges::any_of(plans, [&plan](const Plan& other) {
      return other.partition == plan.partition && other.block == plan.block &&
             other.use_dense == plan.use_dense;
    });
    if (!is_known) plans.push_back(std::move(plan));
  }
  return plans;
}

}  // namespace

PlanResult plan_by_enumeration(const Problem& problem, const device::Machine& machine,
                               const Options& options, const PatternStats* stats) {
  PlanResult best =
      internal::plan_with({problem, machine, options, stats}, internal::rank_exhaustively);
  if (options.constraints.use_dense || !internal::may_have_no_buckets(options)) return best;
  PlanResult dense = internal::plan_without_buckets({problem, machine, options, stats});
  const bool is_cheaper =
      dense.has_plan && (!best.has_plan || dense.plan.cost.cycles < best.plan.cost.cycles);
  return is_cheaper ? dense : best;
}

std::vector<PlanConstraints> cheapest_partitions(const Problem& problem,
                                                 const device::Machine& machine,
                                                 const Options& options, std::size_t count,
                                                 const PatternStats* stats) {
  const auto temp_bound =
      std::int64_t(double(machine.tile_memory.value) * options.available_memory_proportion);
  std::map<Key, std::int64_t> cycles_of;
  const internal::CaseSet set = internal::make_cases({problem, machine, options, stats});
  for (const internal::Case& c : set.cases) keep_cheapest(c, temp_bound, cycles_of);
  std::vector<std::pair<std::int64_t, Key>> by_cost;
  for (const auto& [key, cycles] : cycles_of) by_cost.emplace_back(cycles, key);
  std::sort(by_cost.begin(), by_cost.end());
  std::vector<PlanConstraints> cheapest;
  for (const auto& [cycles, key] : by_cost) {
    if (cheapest.size() == count) break;
    const auto& [x, y, z, buckets] = key;
    cheapest.push_back({x, y, z, problem.grad_w ? std::optional(buckets) : std::nullopt,
                        options.constraints.use_dense});
  }
  return cheapest;
}

std::vector<Plan> cheapest_two_layouts(const Problem& problem, const device::Machine& machine,
                                       const Options& options, std::size_t count,
                                       const PatternStats* stats, LayoutPairs pairs) {
  std::optional<PatternStats> turned;
  if (stats != nullptr) turned = transposed(*stats);
  const Bytes temp_bound(internal::temp_bounds(machine, options).front());
  std::vector<Plan> plans;
  const auto join = [&](const Plan& forward, const Plan& backward) {
    if (auto plan = internal::joined(forward, backward, problem, machine, temp_bound))
      plans.push_back(*std::move(plan));
  };
  for (const bool grad_w_transposed : {false, true}) {
    const auto [one, other] = two_problems(problem, grad_w_transposed);
    const std::vector<Plan> forward = cheapest_plans(one, machine, options, count, stats);
    const std::vector<Plan> backward =
        cheapest_plans(other, machine, options, count, turned ? &*turned : nullptr);
    for (const Plan& plan : forward)
      for (const Plan& turned_plan : backward) {
        const bool has_cheapest = &plan == &forward.front() || &turned_plan == &backward.front();
        if (pairs == LayoutPairs::All || has_cheapest) join(plan, turned_plan);
      }
  }
  return plans;
}

std::int64_t dense_cycles(const Problem& problem, const device::Machine& machine, bool every_cut) {
  const std::int64_t tile = machine.tile_memory.value;
  const DataType sums = problem.data_type == DataType::Half ? DataType::Half : DataType::Float;
  std::int64_t cycles = 0;
  for (const Pass pass : passes_of(problem)) {
    const internal::DenseCase c{.product = dense_product(problem, pass),
                                .groups = problem.size.g,
                                .machine = machine,
                                .kernel = dense_kernel(machine, problem.data_type, sums)};
    const internal::DenseLimits limits{tile * 6 / 10, tile};
    const internal::DenseSearch found =
        every_cut ? search_dense_exhaustively(c, limits) : search_dense(c, limits);
    if (found.best) cycles += found.best->estimate.cycles;
  }
  return cycles;
}

bool equal_answers(const PlanResult& a, const PlanResult& b) {
  return a.status == b.status && a.has_plan == b.has_plan && a.memory_bound == b.memory_bound &&
         a.plan == b.plan;
}

}  // namespace tessera::planner
