#include "tessera/runtime/report_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tessera/planner/plan_json.hpp"
#include "tessera/runtime/internal/report_fields.hpp"

namespace tessera::inline v0::runtime {
namespace {

using internal::Json;

constexpr const char* kOverhead = "sync, launch";

Json to_json(const device::PhaseTotal& phase, const LayerReport& report, planner::Pass pass) {
  return {
      {"phase", phase.phase},
      {"steps", phase.steps},
      {"compute_cycles", phase.compute.value},
      {"exchange_cycles", phase.exchange.value},
      {"overhead_cycles", phase.overhead.value},
      {"planned_cycles", planned_cycles(report, pass, phase.phase).value},
      {"moved_bytes", phase.moved.value},
      {"mean_tile_compute_cycles", double(phase.tile_sum.value) / double(report.machine.tiles)}};
}

Json to_json(const device::StepRecord& step) {
  return {{"phase", step.phase},
          {"kind", step.kind == device::StepKind::Compute ? "compute" : "exchange"},
          {"cycles", step.cycles.value},
          {"overhead_cycles", step.overhead.value},
          {"slowest_tile", step.critical_tile.value},
          {"tile_sum_cycles", step.tile_sum.value},
          {"moved_bytes", step.moved.value}};
}

Json to_json(const LayerReport& report, const PassReport& pass) {
  const planner::PassCost* planned = report.plan.cost.find(pass.pass);
  Json phases = Json::array(), steps = Json::array();
  for (const device::PhaseTotal& phase : pass.ledger.phases())
    phases.push_back(to_json(phase, report, pass.pass));
  for (const device::StepRecord& step : pass.ledger.steps) steps.push_back(to_json(step));
  return {{"pass", planner::to_string(pass.pass)},
          {"cycles", pass.ledger.total().value},
          {"planned_cycles", planned != nullptr ? planned->cycles().value : 0},
          {"planned_overhead_cycles", planned_cycles(report, pass.pass, kOverhead).value},
          {"moved_bytes", pass.ledger.moved().value},
          {"phases", std::move(phases)},
          {"steps", std::move(steps)},
          {"check", internal::verdict_json(pass.verdict)}};
}

Json buckets_json(const LayerReport& report) {
  const partitioner::SpillStats& s = report.spill;
  return {{"records", s.records},
          {"blocks", s.blocks},
          {"spilled_blocks", s.moved_blocks},
          {"spill_steps", s.steps},
          {"spill_steps_at_least", s.lower_bound_steps},
          {"travel_partitions", s.travel},
          {"fullest_values", s.fullest_blocks * report.grid.block.area()},
          {"capacity_values", report.plan.nonzeros_per_bucket},
          {"fullest_words", s.fullest_words},
          {"capacity_words", report.grid.meta_words}};
}

Json totals_json(const LayerReport& report) {
  Cycles cycles;
  Bytes moved;
  for (const PassReport& pass : report.passes) {
    cycles += pass.ledger.total();
    moved += pass.ledger.moved();
  }
  const double nonzeros = double(report.spill.blocks * report.grid.block.area());
  const std::optional<Cycles> dense = dense_bound(report.problem, report.machine);
  return {
      {"cycles", cycles.value},
      {"planned_cycles", report.plan.cost.cycles.value},
      {"seconds", double(cycles.value) / report.machine.clock_hz},
      {"useful_flops", 2 * nonzeros * double(report.problem.size.z) * double(report.passes.size())},
      {"moved_bytes", moved.value},
      {"fullest_tile_bytes", report.high_water.value},
      {"tile_memory_bytes", report.machine.tile_memory.value},
      {"dense_pass_at_peak_cycles", dense ? Json(dense->value) : Json(nullptr)}};
}

}  // namespace

std::string status_of(const LayerReport& report, const ReportContext& context) {
  const bool checked = std::any_of(report.passes.begin(), report.passes.end(),
                                   [](const PassReport& p) { return p.verdict.has_value(); });
  return internal::status_of({report.ok(), !report.passes.empty(), checked}, context);
}

std::string to_json(const LayerReport& report, const ReportContext& context) {
  Json passes = Json::array();
  for (const PassReport& pass : report.passes) passes.push_back(to_json(report, pass));
  Json document = internal::opening(report.source, status_of(report, context), context);
  document.update(
      Json{{"how",
            {{"cycles", "modelled"},
             {"planned_cycles", "modelled"},
             {"seconds", "modelled"},
             {"moved_bytes", "counted"},
             {"fullest_tile_bytes", "counted"},
             {"useful_flops", "counted"},
             {"buckets", "counted"},
             {"check", "measured"}}},
           {"planned", Json::parse(planner::plan_to_json(
                           {report.problem, report.machine, context.options, report.plan}))},
           {"buckets", buckets_json(report)},
           {"passes", std::move(passes)},
           {"total", totals_json(report)}});
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string csv_heading() {
  return "source,outputs,inputs,batch,groups,block_rows,block_cols,density,data_type,partials_type,"
         "machine,tiles,seed,status,pass,phase,steps,compute_cycles,exchange_cycles,"
         "overhead_cycles,cycles,planned_cycles,moved_bytes,seconds,seconds_are\n";
}

std::string to_csv(const LayerReport& report, const ReportContext& context) {
  const std::string problem =
      internal::csv_problem({report.source, report.problem, report.machine.name,
                             std::to_string(report.machine.tiles), status_of(report, context)},
                            context);
  std::string text = csv_heading();
  for (const PassReport& pass : report.passes)
    for (const device::PhaseTotal& phase : pass.ledger.phases())
      text += fmt::format("{},{},{},{},{},{},{},{},{},{},{:.9g},modelled\n", problem,
                          planner::to_string(pass.pass), internal::csv_quoted(phase.phase),
                          phase.steps, phase.compute.value, phase.exchange.value,
                          phase.overhead.value, (phase.compute + phase.exchange).value,
                          planned_cycles(report, pass.pass, phase.phase).value, phase.moved.value,
                          double((phase.busy() + phase.overhead).value) / report.machine.clock_hz);
  return text;
}

}  // namespace tessera::inline v0::runtime
