#include "tessera/study/plan_answer.hpp"

#include <fmt/format.h>

#include "tessera/base/printable.hpp"
#include "tessera/base/wrapped.hpp"
#include "tessera/partitioner/forecast.hpp"
#include "tessera/planner/explain.hpp"
#include "tessera/report/plan_notes.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/study/forecast_model.hpp"
#include "tessera/study/tables.hpp"
#include "tessera/study/verdict.hpp"

namespace tessera::study {
namespace {

planner::Explanation explanation_of(const PlanAnswer& answer) {
  const planner::PlannedLayer& layer = answer.layer;
  return planner::explain(layer.problem, layer.machine, layer.options,
                          answer.stats ? &*answer.stats : nullptr, layer.plan);
}

// Returns the probability that an unknown pattern spills, and the capacity that makes spills rare.
// It is empty for a known pattern, which the planner has counted, and for dense buckets, which hold
// every block.
std::string spill_text(const PlanAnswer& answer) {
  const planner::PlannedLayer& layer = answer.layer;
  if (answer.stats || layer.plan.use_dense) return {};
  constexpr double kRare = 0.001;
  const partitioner::TileGrid grid = runtime::tile_grid(layer.problem, layer.plan, layer.machine);
  const double density = layer.problem.density;
  const double probability = partitioner::spill_probability(grid, density);
  std::string text = fmt::format(
      "spilling   a uniform random pattern of this density spills with probability {:.2g}",
      probability);
  if (probability > kRare)
    text += fmt::format("; with {:.2f} times the capacity of every bucket, {:g}",
                        partitioner::capacity_factor_for(grid, density, kRare), kRare);
  return text + "\n";
}

std::optional<PlanVerdict> verdict_of(const PlanAnswer& answer) {
  return plan_verdict(answer.layer, answer.stats ? &answer.pattern : nullptr);
}

// Returns the verdict as text, after the dense plan if that is asked for.
std::string verdict_text(const PlanAnswer& answer, bool explain) {
  const std::optional<PlanVerdict> verdict = verdict_of(answer);
  if (!verdict) return {};
  const auto& dense = verdict->dense.plan;
  return (explain && dense && !verdict->dense.buckets ? to_string(*dense) : std::string()) +
         report::verdict_line(verdict->comparison);
}

// Adds the collectives before the step of the devices, or those after it.
void add_collectives(const pod::PodPass& pass, bool are_before, Table& table) {
  for (const pod::PlannedCollective& step : pass.collectives) {
    if ((step.when == pod::When::Before) != are_before) continue;
    const std::int64_t runs = pass.runs(step);
    double bytes = 0;
    for (const double level : step.level_bytes) bytes += level;
    table.rows.push_back({to_string(pass.pass), std::string(collectives::to_string(step.operation)),
                          std::string(to_string(step.operand)), std::string(to_string(step.axis)),
                          runs, double(runs) * step.seconds, double(runs) * bytes, Cell()});
  }
}

}  // namespace

std::string to_csv(const pod::PodPlan& plan) {
  Table table{.key = "steps"};
  for (const char* key :
       {"pass", "step", "operand", "axis", "runs", "seconds", "link_bytes", "cycles"})
    table.columns.push_back({.key = key, .title = key});
  for (const pod::PodPass& pass : plan.passes) {
    add_collectives(pass, /*are_before=*/true, table);
    table.rows.push_back(
        {to_string(pass.pass), "devices", Cell(), Cell(), pass.serial_parts, pass.device_seconds,
         Cell(),
         pass.serial_parts * pass.cycles.value + (pass.serial_parts - 1) * pass.add_cycles.value});
    add_collectives(pass, /*are_before=*/false, table);
    if (pass.barrier_seconds > 0)
      table.rows.push_back({to_string(pass.pass), "barrier", Cell(), Cell(), std::int64_t{1},
                            pass.barrier_seconds, Cell(), Cell()});
  }
  return table_csv(table);
}

std::string to_json(const PlanAnswer& answer, bool explain) {
  const std::optional<PlanVerdict> verdict = verdict_of(answer);
  return report::with_notes(
      planner::plan_to_json(answer.layer),
      {.relaxation = answer.relaxation,
       .explanation = explain ? to_json(explanation_of(answer)) : std::string(),
       .block_choice = answer.block_choice,
       .verdict = verdict ? report::to_json(verdict->comparison) : std::string()});
}

std::string to_text(const PlanAnswer& answer, bool explain) {
  const planner::PlannedLayer& layer = answer.layer;
  std::string text;
  for (const std::string& note :
       {answer.block_choice, answer.relaxation, report::dense_note(layer.plan, layer.options)})
    if (!note.empty()) text += fmt::format("note       {}\n", note);
  text += fmt::format("layer      {}\nmachine    {}: {} tiles of {} bytes\n{}",
                      to_string(layer.problem), printable(layer.machine.name), layer.machine.tiles,
                      layer.machine.tile_memory.value, to_string(layer.plan));
  if (explain) text += "\n" + to_text(explanation_of(answer)) + spill_text(answer);
  text += verdict_text(answer, explain);
  return wrapped(text, /*indented=*/6, /*flush=*/11);
}

HostAnswer answer_on_host(const Problem& problem, const sparse::Csr<double>* ones,
                          const host::FoundRates& found) {
  check_problem(problem);
  ForecastModel model(problem, found);
  const Form own{problem.block, problem.density, ones};
  return {plan_on_host(problem, own, found), compare(model, best_form(model, own))};
}

std::string to_text(const HostAnswer& answer) {
  const std::string& choice = answer.block_choice;
  return (choice.empty() ? choice : fmt::format("note       {}\n", choice)) + to_text(answer.plan) +
         wrapped(report::verdict_line(answer.verdict), /*indented=*/11, /*flush=*/11);
}

std::string to_json(const HostAnswer& answer) {
  return report::with_notes(to_json(answer.plan), {.block_choice = answer.block_choice,
                                                   .verdict = report::to_json(answer.verdict)});
}

}  // namespace tessera::study
