#include "tessera/study/planned_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/planner/no_fit.hpp"
#include "tessera/planner/sparse_below.hpp"
#include "tessera/sparse/block_stats.hpp"

namespace tessera::study {
namespace {

// The most parts of a batch; more would take longer than any dense layer.
constexpr std::int64_t kMostParts = 64;

// The form of a layer as the planner is asked for it.
struct Asked {
  Problem problem;
  std::optional<PatternStats> stats;
  Cost known;

  const PatternStats* pattern() const { return stats ? &*stats : nullptr; }
};

Asked asked_for(const CostModel& model, const Form& form) {
  Asked asked{model.problem(form), {}, {.block = form.block, .density = form.density}};
  asked.known.filled_percent = 100;
  if (form.pattern == nullptr) return asked;
  asked.stats = sparse::stats_in_blocks(*form.pattern, form.block);
  Cost& cost = asked.known;
  cost.blocks = asked.stats->blocks();
  cost.density = double(cost.blocks) /
                 (double(asked.stats->row_counts.size()) * double(asked.stats->col_counts.size()));
  cost.filled_percent = cost.blocks == 0 ? 0
                                         : 100 * double(form.pattern->blocks()) /
                                               (double(cost.blocks) * double(form.block.area()));
  asked.problem.density = cost.density;
  return asked;
}

// Returns use(), or `otherwise` if no kernel has this combination of block and types, which
// concerns this form only.
template <class Result, class Use>
Result unless_no_kernel(Result otherwise, const Use& use) {
  try {
    return use();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::InvalidArgument) throw;
    return otherwise;
  }
}

void add_figures(const planner::PlanCost& plan, Cost& cost) {
  cost.temporary = plan.temp;
  cost.tile_memory = plan.temp + plan.resident;
  for (const planner::PassCost& pass : plan.passes)
    cost.passes.emplace_back(pass.pass, double(pass.cycles().value));
}

Cycles cycles_of(double limit) {
  return limit < double(planner::kMostCycles.value) ? Cycles(std::llround(limit))
                                                    : planner::kMostCycles;
}

}  // namespace

PlannedModel::PlannedModel(const Problem& layer, const device::Machine& machine,
                           const planner::Options& options, bool relaxes, PlanBy plan_by)
    : CostModel(layer),
      machine_(machine),
      options_(options),
      relaxes_(relaxes),
      plan_by_(plan_by ? std::move(plan_by) : planner::plan) {
  options_.constraints.use_dense = false;
}

Cost PlannedModel::planned(Cost result, const Problem& asked, const PatternStats* stats) {
  try {
    check_problem(asked);
    planner::PlanResult found = plan_by_(asked, machine_, options_, stats);
    std::optional<planner::Relaxation> relaxation;
    if (!found.has_plan && relaxes_) {
      planner::BestEffort effort = planner::plan_best_effort(asked, machine_, options_, stats);
      found = std::move(effort.result);
      relaxation = effort.relaxation;
    }
    result.note = found.reason;
    if (!found.has_plan) return result;
    const Cycles all = relaxation ? relaxation->total_cycles : found.plan.cost.cycles;
    result.value = double(all.value);
    result.tiles = found.plan.tiles_used();
    add_figures(found.plan.cost, result);
    if (relaxation)
      for (auto& [pass, cycles] : result.passes) cycles *= double(relaxation->runs);
    result.plan = std::move(found.plan);
  } catch (const Error& error) {
    // A combination of block and types that no kernel has concerns this block only.
    if (error.code() != ErrorCode::InvalidArgument) throw;
    result.note = error.what();
  }
  return result;
}

Cost PlannedModel::sparse(const Form& form) {
  const Asked asked = asked_for(*this, form);
  return planned(asked.known, asked.problem, asked.pattern());
}

// A batch that has no plan as a whole is cut into the fewest of 2, 4 ... 64 equal parts that have
// one. They run one after the other, as the rounds of a dense plan do.
Cost PlannedModel::whole_or_parts(const Form& form) {
  Asked asked = asked_for(*this, form);
  Cost whole = planned(asked.known, asked.problem, asked.pattern());
  const std::int64_t batch = asked.problem.size.z;
  for (std::int64_t parts = 2; !whole.value && parts <= std::min(kMostParts, batch); parts *= 2) {
    asked.problem.size.z = ceil_div(batch, parts);
    Cost part = planned(asked.known, asked.problem, asked.pattern());
    if (!part.value) continue;
    const std::int64_t runs = ceil_div(batch, asked.problem.size.z);
    *part.value *= double(runs);
    for (auto& [pass, cycles] : part.passes) cycles *= double(runs);
    part.note = fmt::format("batch in {} runs of {}", runs, asked.problem.size.z);
    return part;
  }
  return whole;
}

Cost PlannedModel::cheapest(const Form& form) {
  Cost blocks = whole_or_parts(form);
  if (form.block.is_element()) return blocks;
  Form as_elements = form;
  as_elements.block = {1, 1};
  Cost elements = whole_or_parts(as_elements);
  return elements.value && (!blocks.value || *elements.value < *blocks.value) ? elements : blocks;
}

Cost PlannedModel::dense(std::int64_t batch) {
  Problem problem = layer();
  if (batch > 0) problem.size.z = batch;
  return cost_of(report::dense_baseline(problem, machine_, options_));
}

Look PlannedModel::look_at_plans(const Problem& asked, Cycles limit) const {
  return unless_no_kernel(Look(), [&] {
    check_problem(asked);
    const auto plan = planner::sparse_plan_below(limit, asked, machine_, options_);
    if (!plan) return Look();
    const std::int64_t step = std::llround(asked.density * planner::kDensitySteps);
    return Look{.pays = true,
                .reach = planner::highest_step_like(*plan, limit, asked, machine_, options_, step)};
  });
}

// Returns whether a batch that has no plan as a whole costs less than `limit` in parts.
bool PlannedModel::pays_in_parts(Problem asked, Cycles limit) const {
  const auto has_plan_below = [&](Cycles cycles) {
    return planner::sparse_plan_below(cycles, asked, machine_, options_).has_value();
  };
  return unless_no_kernel(false, [&] {
    check_problem(asked);
    const std::int64_t batch = asked.size.z;
    for (std::int64_t parts = 2; parts <= std::min(kMostParts, batch); parts *= 2) {
      if (has_plan_below(planner::kMostCycles))
        return false;  // it has a plan, which costs too much
      asked.size.z = ceil_div(batch, parts);
      if (has_plan_below(Cycles(ceil_div(limit.value, ceil_div(batch, asked.size.z))))) return true;
    }
    return false;
  });
}

Look PlannedModel::look(const Form& form, double limit) {
  if (relaxes_) return CostModel::look(form, limit);
  Form elements = form;
  elements.block = {1, 1};
  const Cycles cycles = cycles_of(limit);
  for (const Form& one : {form, elements})
    if (const Look found = look_at_plans(problem(one), cycles); found.pays) return found;
  return {.pays = pays_in_parts(problem(form), cycles) || pays_in_parts(problem(elements), cycles)};
}

std::optional<std::int64_t> PlannedModel::known_reach(const Form& form, double limit) {
  if (relaxes_) return {};
  if (!like_) return 0;
  return unless_no_kernel<std::int64_t>(0, [&] {
    const Problem asked = problem(form);
    check_problem(asked);
    return planner::highest_step_like(*like_, cycles_of(limit), asked, machine_, options_);
  });
}

// Plans only forms that cost less than the limit, and cuts the batch of the layer where it must.
Cost PlannedModel::below(const Form& form, double limit) {
  const bool may_cut = form.batch == 0 || form.batch == layer().size.z;
  const auto may_cost_less = [&] {
    const Asked asked = asked_for(*this, form);
    const auto has_plan_below = [&](Cycles cycles) {
      return planner::sparse_plan_below(cycles, asked.problem, machine_, options_, asked.pattern())
          .has_value();
    };
    check_problem(asked.problem);
    return has_plan_below(cycles_of(limit)) || (may_cut && !has_plan_below(planner::kMostCycles));
  };
  if (!relaxes_ && !unless_no_kernel(false, may_cost_less)) return {.block = form.block};
  return may_cut ? whole_or_parts(form) : sparse(form);
}

Cost cost_of(const report::DenseBaseline& dense) {
  Cost cost{.note = dense.reason, .is_dense = true};
  if (!dense.plan) return cost;
  cost.value = double(dense.plan->cost.cycles.value);
  cost.kernel = dense.name();
  cost.tiles = dense.plan->groups * dense.plan->passes.front().parts.product();
  add_figures(dense.plan->cost, cost);
  return cost;
}

}  // namespace tessera::study
