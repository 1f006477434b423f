#include "tessera/report/report_json.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/base/pass.hpp"
#include "tessera/base/printable.hpp"
#include "tessera/json/value.hpp"
#include "tessera/planner/plan_json.hpp"
#include "tessera/report/internal/report_fields.hpp"

namespace tessera::report {
namespace {

using internal::Json;

Json to_json(const device::PhaseTotal& phase, const LayerReport& report, Pass pass) {
  return {
      {"phase", to_string(phase.phase)},
      {"steps", phase.steps},
      {"compute_cycles", phase.compute.value},
      {"exchange_cycles", phase.exchange.value},
      {"control_cycles", phase.control.value},
      {"overhead_cycles", phase.overhead.value},
      {"planned_cycles", planned_cycles(report, pass, phase.phase).value},
      {"moved_bytes", phase.moved.value},
      {"mean_tile_compute_cycles", double(phase.tile_sum.value) / double(report.machine.tiles)}};
}

Json to_json(const device::StepRecord& step) {
  return {{"phase", to_string(step.phase)},
          {"kind", to_string(step.kind)},
          {"cycles", step.cycles.value},
          {"overhead_cycles", step.overhead.value},
          {"slowest_tile", step.critical_tile.value},
          {"tile_sum_cycles", step.tile_sum.value},
          {"tiles", step.tiles},
          {"slowest_over_mean", step.imbalance()},
          {"moved_bytes", step.moved.value}};
}

Json to_json(const Imbalance& imbalance, const device::Ledger& ledger) {
  if (imbalance.longest_step < 0) return nullptr;
  const device::StepRecord& step = ledger.steps[std::size_t(imbalance.longest_step)];
  return {{"longest_step", imbalance.longest_step + 1},
          {"phase", to_string(step.phase)},
          {"cycles", step.cycles.value},
          {"slowest_tile", step.critical_tile.value},
          {"slowest_over_mean", imbalance.of_longest},
          {"compute_slowest_over_mean", imbalance.of_compute}};
}

template <class Quantity>
Json values_of(const std::vector<Quantity>& list) {
  Json values = json::List();
  for (const Quantity& one : list) values.push_back(one.value);
  return values;
}

Json to_json(const device::MemoryUse& use) {
  Json at_peak = json::List();
  for (const device::HeldBuffer& held : use.at_peak)
    at_peak.push_back({{"buffer", held.name}, {"bytes", held.bytes.value}});
  return {{"fullest_tile", use.fullest.value},
          {"fullest_tile_bytes", values_of(use.by_stage)},
          {"at_peak", std::move(at_peak)}};
}

Json buffers_json(const TileReport& tiles) {
  Json buffers = json::List();
  for (std::size_t i = 0; i < tiles.buffers.size(); ++i) {
    const runtime::Buffer& buffer = tiles.buffers[i];
    const runtime::Liveness::Life& life = tiles.liveness.lives[i];
    buffers.push_back({{"buffer", buffer.name},
                       {"resident", buffer.resident},
                       {"largest_bytes", buffer.largest.value},
                       {"first_phase", life.first},
                       {"last_phase", life.last}});
  }
  return buffers;
}

Json to_json(const TileReport& tiles) {
  std::vector<Bytes> peaks;
  for (const device::TilePeak& peak : tiles.memory.tiles) peaks.push_back(peak.bytes);
  return {{"compute_cycles", values_of(tiles.compute)},
          {"exchange_cycles", values_of(tiles.exchange)},
          {"sent_bytes", values_of(tiles.sent)},
          {"received_bytes", values_of(tiles.received)},
          {"memory_bytes", values_of(peaks)},
          {"memory", to_json(tiles.memory)},
          {"phases", tiles.liveness.stages},
          {"buffers", buffers_json(tiles)}};
}

Json to_json(const LayerReport& report, const PassReport& pass, bool with_tiles) {
  const planner::PassCost* planned = report.plan.cost.find(pass.pass);
  Json phases = json::List(), steps = json::List();
  for (const device::PhaseTotal& phase : pass.ledger.phases())
    phases.push_back(to_json(phase, report, pass.pass));
  for (const device::StepRecord& step : pass.ledger.steps) steps.push_back(to_json(step));
  Json json = {
      {"pass", to_string(pass.pass)},
      {"cycles", pass.ledger.total().value},
      {"planned_cycles", planned != nullptr ? planned->cycles().value : 0},
      {"planned_overhead_cycles", planned_cycles(report, pass.pass, Phase::Overhead).value},
      {"moved_bytes", pass.ledger.moved().value},
      {"phases", std::move(phases)},
      {"steps", std::move(steps)},
      {"imbalance", to_json(imbalance(pass.ledger), pass.ledger)},
      {"check", internal::verdict_json(pass.verdict)}};
  if (pass.self_check) json["self_check"] = internal::self_check_json(*pass.self_check);
  if (with_tiles && pass.tiles) json["tiles"] = to_json(*pass.tiles);
  return json;
}

Json buckets_json(const LayerReport& report) {
  const partitioner::SpillStats& s = report.spill;
  return {{"records", s.records},
          {"blocks", s.blocks},
          {"spilled_blocks", s.moved_blocks},
          {"spill_steps", s.steps},
          {"spill_steps_at_least", s.lower_bound_steps},
          {"visit_cycles", s.load.value},
          {"uneven_visit_cycles", s.uneven_load.value},
          {"travel_partitions", s.travel},
          {"fullest_values", s.fullest_blocks * report.grid.block.area()},
          {"capacity_values", report.plan.nonzeros_per_bucket},
          {"fullest_words", s.fullest_words},
          {"capacity_words", report.grid.meta_words},
          {"pattern_bytes", report.pattern_bytes.value}};
}

Json totals_json(const LayerReport& report) {
  Cycles cycles;
  Bytes moved;
  for (const PassReport& pass : report.passes) {
    cycles += pass.ledger.total();
    moved += pass.ledger.moved();
  }
  const double nonzeros = double(report.spill.blocks * report.grid.block.area());
  return {
      {"cycles", cycles.value},
      {"planned_cycles", report.plan.cost.cycles.value},
      {"seconds", double(cycles.value) / report.machine.clock_hz},
      {"useful_flops", 2 * nonzeros * double(report.problem.size.z) * double(report.passes.size())},
      {"moved_bytes", moved.value},
      {"fullest_tile_bytes", report.high_water.value},
      {"tile_memory_bytes", report.machine.tile_memory.value}};
}

Json verdict_json(const LayerReport& report) {
  const std::optional<DenseComparison> comparison = dense_comparison(report);
  return comparison ? json::parse_own(to_json(*comparison)) : Json();
}

}  // namespace

std::string status_of(const LayerReport& report, const ReportContext& context) {
  const bool checked = std::any_of(report.passes.begin(), report.passes.end(),
                                   [](const PassReport& p) { return p.verdict.has_value(); });
  return internal::status_of({report.ok(), !report.passes.empty(), checked}, context);
}

namespace {

// A static plan is written without the tile of every block, of which there may be millions.
Json planned_json(const LayerReport& report, const ReportContext& context) {
  Json planned = json::parse_own(
      planner::plan_to_json({report.problem, report.machine, context.options, report.plan}));
  if (!report.static_plan) return planned;
  Json plan = json::parse_own(planner::to_json(*report.static_plan));
  plan.erase("layouts");
  plan["tiles"] = report.static_plan->tiles_used();
  planned["plan"] = std::move(plan);
  return planned;
}

}  // namespace

std::string to_json(const LayerReport& report, const ReportContext& context) {
  Json passes = json::List();
  for (const PassReport& pass : report.passes)
    passes.push_back(to_json(report, pass, context.with_tiles));
  Json document = internal::opening(report.source, status_of(report, context), context);
  document.update(Json{{"how",
                        {{"cycles", "modelled"},
                         {"planned_cycles", "modelled"},
                         {"seconds", "modelled"},
                         {"moved_bytes", "counted"},
                         {"fullest_tile_bytes", "counted"},
                         {"useful_flops", "counted"},
                         {"buckets", "counted"},
                         {"verdict", "modelled"},
                         {"check", "measured"}}},
                       {"planned", planned_json(report, context)},
                       {"buckets", buckets_json(report)},
                       {"passes", std::move(passes)},
                       {"total", totals_json(report)},
                       {"verdict", verdict_json(report)}});
  return document.dump(2) + "\n";
}

std::string csv_quoted(const std::string& given) {
  // Spreadsheets take a cell with such a start for a formula and run it.
  const bool is_formula = given.find_first_of("=+-@\t\r") == 0;
  const std::string text = printable(is_formula ? "'" + given : given);
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
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
                          to_string(pass.pass), csv_quoted(std::string(to_string(phase.phase))),
                          phase.steps, phase.compute.value, phase.exchange.value,
                          phase.overhead.value, (phase.compute + phase.exchange).value,
                          planned_cycles(report, pass.pass, phase.phase).value, phase.moved.value,
                          double((phase.busy() + phase.overhead).value) / report.machine.clock_hz);
  return text;
}

}  // namespace tessera::report
