#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <span>
#include <vector>

#include "tessera/planner/internal/lower_bound.hpp"
#include "tessera/planner/internal/search.hpp"
#include "tessera/planner/solver/solver.hpp"

namespace tessera::planner::internal {
namespace {

using solver::Interval;
using solver::Value;
using solver::VarId;

// The costs of a case. The solver asks for cycles and memory one after the other with the same
// arguments, so both are computed once.
class Costs {
 public:
  explicit Costs(const Case& c) : case_(&c) {}

  const PartsCost& exact(std::span<const Value> at) {
    const Dims parts{case_->grains.g, at[0], at[1], at[2]};
    if (parts == exact_at_) return exact_;
    exact_at_ = parts;
    ++evaluations_;
    return exact_ = cost_of(*case_, parts);
  }

  const Bound& least(std::span<const Interval> at) {
    const std::int64_t g = case_->grains.g;
    const Box box{{g, at[0].lo, at[1].lo, at[2].lo}, {g, at[0].hi, at[1].hi, at[2].hi}};
    if (box.lo == least_at_.lo && box.hi == least_at_.hi) return least_;
    least_at_ = box;
    return least_ = lower_bound(*case_, box);
  }

  std::int64_t evaluations() const { return evaluations_; }

 private:
  const Case* case_;
  Dims exact_at_{0, 0, 0, 0};
  PartsCost exact_;
  Box least_at_{{0, 0, 0, 0}, {0, 0, 0, 0}};
  Bound least_;
  std::int64_t evaluations_ = 0;
};

VarId count_variable(solver::Model& model, const std::optional<std::int64_t>& pin,
                     std::int64_t most) {
  const VarId count = model.variable(1, most);
  if (pin) model.equal(count, *pin);
  return count;
}

struct PartitionModel {
  solver::Model model;
  VarId cycles, temp;
  std::array<VarId, 3> parts;
};

void post_partition(const Case& c, PartitionModel& m) {
  const PlanConstraints& pins = c.options.constraints;
  const auto most = [&c](std::int64_t grains) { return std::min(grains, c.machine.tiles); };
  m.parts = {count_variable(m.model, pins.x, most(c.grains.x)),
             count_variable(m.model, pins.y, most(c.grains.y)),
             count_variable(m.model, pins.z, most(c.grains.z))};
  const auto [x, y, z] = m.parts;
  m.model.ceil_div_minimal_divisor(m.model.constant(c.grains.x), x);
  m.model.ceil_div_minimal_divisor(m.model.constant(c.grains.y), y);
  if (c.parity())
    m.model.factor_of(m.model.constant(c.grains.z), z);
  else
    m.model.ceil_div_minimal_divisor(m.model.constant(c.grains.z), z);
  const VarId tiles = m.model.product({m.model.constant(c.grains.g), x, y, z});
  m.model.less_or_equal(tiles, c.machine.tiles);
}

void post_costs(Costs& costs, PartitionModel& m) {
  const std::vector<VarId> at(m.parts.begin(), m.parts.end());
  const auto exact = [&costs](std::int64_t PartsCost::* value) {
    return [&costs, value](std::span<const Value> parts) -> std::optional<Value> {
      const PartsCost& cost = costs.exact(parts);
      return cost.legal ? std::optional(cost.*value) : std::nullopt;
    };
  };
  const auto least = [&costs](std::int64_t Bound::* value) {
    return [&costs, value](std::span<const Interval> box) -> std::optional<Value> {
      const Bound& bound = costs.least(box);
      return bound.possible ? std::optional(bound.*value) : std::nullopt;
    };
  };
  m.cycles = m.model.call_bounded(at, exact(&PartsCost::cycles), least(&Bound::cycles));
  m.temp = m.model.call_bounded(at, exact(&PartsCost::temp), least(&Bound::temp));
}

}  // namespace

SearchOutcome search_with_solver(const Case& c, const SearchBounds& bounds) {
  Costs costs(c);
  PartitionModel m;
  // The counts come first and in this order, because they decide between equal costs.
  const solver::GroupId counts_first = m.model.add_priority_group("partition");
  post_partition(c, m);
  for (const VarId count : m.parts) m.model.set_priority(count, counts_first);
  m.model.prioritise(counts_first, m.model.default_group());
  post_costs(costs, m);

  solver::SearchLimits limits;
  limits.max_nodes = bounds.examined;
  limits.solutions = bounds.count;
  std::atomic<bool> is_enough = false;
  solver::Callbacks callbacks{&is_enough, {}};
  if (bounds.any) callbacks.progress = [&](const solver::Progress&) { is_enough = true; };
  const solver::Result result = solver::minimise(
      m.model, {{m.cycles, bounds.cycles}, {m.temp, bounds.temp}}, limits, callbacks);
  SearchOutcome outcome;
  outcome.evaluations = costs.evaluations();
  outcome.examined = result.counts.nodes;
  outcome.limit_reached =
      result.status == solver::Status::Feasible || result.status == solver::Status::LimitReached;
  const auto keep = [&](const auto& solution) {
    const auto [x, y, z] = m.parts;
    const PricedParts priced{
        {c.grains.g, solution[x], solution[y], solution[z]}, solution[m.cycles], solution[m.temp]};
    if (is_better(priced, bounds.cycles, bounds.best_temp)) outcome.found.push_back(priced);
  };
  if (result.has_solution()) keep(result);
  for (const solver::Solution& solution : result.next) keep(solution);
  return outcome;
}

}  // namespace tessera::planner::internal
