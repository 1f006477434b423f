#include "tessera/planner/no_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/float_mode.hpp"
#include "tessera/planner/internal/dense_layer.hpp"
#include "tessera/planner/internal/nearest.hpp"
#include "tessera/planner/internal/planner_search.hpp"
#include "tessera/planner/internal/relaxations.hpp"

namespace tessera::planner {
namespace {

using internal::Asked;
using internal::Case;
using internal::Nearness;
using internal::Relaxer;

struct Survey {
  std::vector<Nearness> nears;  // by case
  std::int64_t bound = 0;       // upper bound on temporary bytes, the last that plan() tries
  Bytes least_temp_in_tile = Bytes(internal::kUnbounded);
};

Survey survey_of(const Asked& asked, const std::vector<Case>& cases) {
  Survey survey;
  survey.bound = internal::temp_bounds(asked.machine, asked.options).back();
  for (const Case& c : cases) {
    survey.nears.push_back(internal::nearness(c, survey.bound));
    survey.least_temp_in_tile =
        std::min(survey.least_temp_in_tile, Bytes(survey.nears.back().least_temp_in_tile));
  }
  return survey;
}

bool has_pins(PlanConstraints pins) {
  if (pins.use_dense == false) pins.use_dense.reset();  // RunDense is tried then
  return pins != PlanConstraints{};
}

void add_relaxations(Relaxer& relaxer, const Asked& asked, Bytes least_temp_in_tile, NoFit& out) {
  const auto add = [&out](RelaxationKind kind, const std::optional<Relaxation>& found) {
    if (found)
      out.relaxations.push_back(*found);
    else
      out.no_help.push_back(kind);
  };
  if (relaxer.most_tiles() > asked.machine.tiles)
    add(RelaxationKind::MoreTiles, relaxer.more_tiles());
  add(RelaxationKind::SmallerBatch, relaxer.smaller_batch());
  add(RelaxationKind::MoreMemory, relaxer.more_memory(least_temp_in_tile));
  bool any_block = false;
  for (const std::int64_t side : {1, 4, 8, 16})
    if (const auto found = relaxer.other_block(side)) {
      any_block = true;
      out.relaxations.push_back(*found);
    }
  if (!any_block) out.no_help.push_back(RelaxationKind::OtherBlock);
  add(RelaxationKind::LowerDensity, relaxer.lower_density());
  add(RelaxationKind::BatchInParts, relaxer.batch_in_parts());
  if (relaxer.may_run_dense()) add(RelaxationKind::RunDense, relaxer.run_dense());
  if (has_pins(asked.options.constraints)) add(RelaxationKind::NoPins, relaxer.no_pins());
}

// Returns the change that plan_best_effort() applies.
std::optional<Relaxation> cheapest_own_change(Relaxer& relaxer, Bytes least_temp_in_tile) {
  const auto memory = relaxer.more_memory(least_temp_in_tile);
  const auto parts = relaxer.batch_in_parts();
  if (memory && parts) return parts->total_cycles < memory->total_cycles ? parts : memory;
  if (memory || parts) return memory ? memory : parts;
  return relaxer.memory_and_parts();
}

}  // namespace

NoFit explain_no_fit(const Problem& problem, const device::Machine& machine, const Options& options,
                     const PatternStats* stats) {
  const DefaultFloatMode mode;
  const Asked asked{problem, machine, options, stats};
  const internal::CaseSet set = internal::make_cases(asked);
  const Survey survey = survey_of(asked, set.cases);
  NoFit out;
  out.request = internal::request_text(problem, machine);
  const bool fits = std::ranges::any_of(survey.nears,
                                        [](const Nearness& near) {
                                          return near.parts.has_value() && near.excess <= 1;
                                        }) ||
                    (internal::may_have_no_buckets(options) &&
                     internal::plan_without_buckets(asked, internal::kAnyCycles).has_plan);
  if (fits)
    throw_invalid(
        fmt::format("{} has a plan; explain_no_fit is for requests without", out.request));
  for (std::size_t i = 0; i < set.cases.size(); ++i)
    out.methods.push_back(internal::obstacle_of(set.cases[i], survey.nears[i], survey.bound));
  out.tightest = out.methods[internal::nearest_of(survey.nears)];
  Relaxer relaxer(asked);
  add_relaxations(relaxer, asked, survey.least_temp_in_tile, out);
  const auto cost = [](const Relaxation& r) {
    return std::pair(r.kind == RelaxationKind::LowerDensity, r.total_cycles);
  };
  const auto cheapest = std::ranges::min_element(out.relaxations, {}, cost);
  if (cheapest != out.relaxations.end() && cheapest->kind != RelaxationKind::LowerDensity)
    out.cheapest = std::size_t(cheapest - out.relaxations.begin());
  out.plans_made = relaxer.plans_made();
  return out;
}

BestEffort plan_best_effort(const Problem& problem, const device::Machine& machine,
                            const Options& options, const PatternStats* stats) {
  const DefaultFloatMode mode;
  BestEffort effort{plan(problem, machine, options, stats), {}, problem, options};
  if (effort.result.status != PlanStatus::NoPlan) return effort;
  const Asked asked{problem, machine, options, stats};
  const internal::CaseSet set = internal::make_cases(asked);
  Relaxer relaxer(asked);
  effort.relaxation = cheapest_own_change(relaxer, survey_of(asked, set.cases).least_temp_in_tile);
  if (!effort.relaxation) return effort;
  effort.problem.size.z = effort.relaxation->batch;
  effort.options.available_memory_proportion = effort.relaxation->memory_proportion;
  effort.result = plan(effort.problem, machine, effort.options, stats);
  TESSERA_ASSERT(effort.result.has_plan);
  effort.result.status = PlanStatus::BestEffort;
  effort.result.reason = fmt::format("best effort, {}", to_string(*effort.relaxation));
  return effort;
}

}  // namespace tessera::planner
