#include "tessera/report/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>
#include <vector>

#include "tessera/base/pass.hpp"
#include "tessera/report/internal/report_text.hpp"
#include "tessera/report/report_json.hpp"

namespace tessera::report {
namespace {

using internal::binary_size, internal::block_name, internal::grouped, internal::write_parts;
using Out = internal::TextOut;

std::string_view description_of(Placement placement) {
  switch (placement) {
    case Placement::EvenSpread:
      return "spread evenly over all tiles before and after each pass";
    case Placement::AsLeft:
      return "spread evenly over all tiles, for GradW as the other passes left them";
    case Placement::AtHome:
      return "in the slices of the plan before and after each pass";
  }
  return {};
}

void write_machine(const LayerReport& report, Out out) {
  const device::Machine& m = report.machine;
  fmt::format_to(out, "machine   {}: {} tiles of {}, {:.3f} GHz\n", m.name, grouped(m.tiles),
                 binary_size(m.tile_memory), m.clock_hz / 1e9);
}

std::string grad_w_method(const planner::Plan& layout) {
  return fmt::format(", {} ({} travel)", to_string(layout.grad_w),
                     layout.grad_w_exchange_buckets ? "buckets" : "operands");
}

std::string methods(const LayerReport& report) {
  const planner::Plan& plan = report.plan;
  std::string text = to_string(plan.fwd);
  if (report.problem.grad_a && plan.backward.empty()) text += ", " + to_string(plan.grad_a);
  if (report.problem.grad_w && !plan.runs_transposed(Pass::GradW)) text += grad_w_method(plan);
  return text;
}

// Writes the transposed layout, whose x is the y of the layer.
void write_backward(const LayerReport& report, Out out) {
  if (report.plan.backward.empty()) return;
  const planner::Plan& plan = report.plan.backward.front();
  const bool grad_w = report.plan.runs_transposed(Pass::GradW);
  write_parts(
      "GradA",
      {fmt::format("own layout: y {} * x {} * z {} = {} tiles", plan.partition.x, plan.partition.y,
                   plan.partition.z, grouped(plan.tiles_used())),
       fmt::format("{} of transpose(R){}", to_string(plan.fwd), grad_w ? grad_w_method(plan) : ""),
       (plan.use_dense ? "dense in " : "as ") + block_name(plan.block),
       fmt::format("bucket of {} values and {} words", plan.nonzeros_per_bucket,
                   plan.fwd_meta_words.value)},
      out);
}

// Writes the parts of every pass, each of which is cut in its own way.
void write_dense_plan(const LayerReport& report, Out out) {
  const planner::DensePlan& plan = *report.plan.dense;
  const char* name = "plan";
  for (const planner::DensePassPlan& pass : plan.passes) {
    const auto [rows, inner, columns] = pass.parts;
    const std::int64_t tiles = plan.groups * pass.parts.product(), rounds = pass.rounds.product();
    std::vector<std::string> parts = {fmt::format("{} in {} * {} * {} = {} tiles",
                                                  to_string(pass.product.pass), rows, inner,
                                                  columns, grouped(tiles))};
    if (rounds > 1) parts.push_back(fmt::format("{} rounds", rounds));
    if (pass.product.pass == Pass::Fwd) parts.push_back("R dense, without buckets");
    write_parts(name, parts, out);
    name = "";
  }
  if (report.high_water > Bytes{})
    write_parts("",
                {fmt::format("fullest tile {} of {}", binary_size(report.high_water),
                             binary_size(report.machine.tile_memory))},
                out);
}

void write_static_plan(const LayerReport& report, Out out) {
  const planner::StaticPlan& plan = *report.static_plan;
  const auto parts_of = [](std::size_t count, const char* name) {
    return fmt::format("{} {}{}", count, name, count == 1 ? "" : "s");
  };
  std::vector<std::string> parts = {
      "static pattern", parts_of(plan.parts.size(), "part") + " of the batch",
      parts_of(plan.bands.size() - 1, "band"), grouped(plan.tiles_used()) + " tiles"};
  if (plan.grad_a)
    parts.push_back(fmt::format("GradA on {} of its own", grouped(plan.grad_a->tiles_used())));
  if (report.high_water > Bytes{})
    parts.push_back(fmt::format("fullest tile {} of {}", binary_size(report.high_water),
                                binary_size(report.machine.tile_memory)));
  write_parts("plan", parts, out);
}

void write_plan(const LayerReport& report, Out out) {
  if (report.static_plan) return write_static_plan(report, out);
  if (report.plan.dense) return write_dense_plan(report, out);
  const planner::Plan& plan = report.plan;
  const std::string groups =
      plan.partition.g > 1 ? fmt::format("g {} * ", plan.partition.g) : std::string();
  std::vector<std::string> parts = {
      fmt::format("{}x {} * y {} * z {} = {} tiles", groups, plan.partition.x, plan.partition.y,
                  plan.partition.z, grouped(plan.tiles_used())),
      methods(report)};
  if (plan.use_dense)
    parts.push_back("R dense in " + block_name(plan.block));
  else if (plan.block != report.problem.block)
    parts.push_back("as " + block_name(plan.block));
  write_parts("plan", parts, out);
  const std::string for_grad_a = plan.grad_a_meta_words > Words{}
                                     ? fmt::format(" + {} for GradA", plan.grad_a_meta_words.value)
                                     : std::string();
  std::vector<std::string> memory = {fmt::format("bucket of {} values and {} words{}",
                                                 plan.nonzeros_per_bucket,
                                                 plan.fwd_meta_words.value, for_grad_a)};
  if (report.high_water > Bytes{})
    memory.push_back(fmt::format("fullest tile {} of {}", binary_size(report.high_water),
                                 binary_size(report.machine.tile_memory)));
  write_parts("", memory, out);
  write_backward(report, out);
}

// Returns the number of steps that spilled blocks need, with the known lower bound.
std::string spill_steps(const partitioner::SpillStats& s) {
  std::string text = fmt::format("{} steps", s.steps);
  if (s.exact())
    text += ", the fewest";
  else if (s.lower_bound_steps > 0)
    text += fmt::format(", at least {} needed", s.lower_bound_steps);
  if (s.greedy_steps > 0) text += fmt::format(", {} by PopSparse's order", s.greedy_steps);
  return text;
}

void write_buckets(const LayerReport& report, Out out) {
  const partitioner::SpillStats& s = report.spill;
  fmt::format_to(out, "buckets   {} {}; fullest holds {} of {} values, {} of {} words\n",
                 grouped(s.records), s.records == 1 ? "record" : "records",
                 s.fullest_blocks * report.grid.block.area(), report.plan.nonzeros_per_bucket,
                 s.fullest_words, report.grid.meta_words);
  std::vector<std::string> parts = {fmt::format("{} of {} ({:.2f} %)", grouped(s.moved_blocks),
                                                grouped(s.blocks), 100 * s.moved_share())};
  if (!report.travel.stays_home()) {
    parts.push_back(fmt::format("travel up to {} along x, {} along y", report.travel.x_end() - 1,
                                report.travel.largest_y_end() - 1));
    parts.push_back(spill_steps(s));
  }
  if (s.uneven_load > Cycles())
    parts.push_back(fmt::format("forward visits estimated at {} cycles, {} before evening the load",
                                grouped(s.load.value), grouped(s.uneven_load.value)));
  write_parts("spilled", parts, out);
}

void write_pattern(const LayerReport& report, Out out) {
  fmt::format_to(out, "pattern   {} to send if it changes\n", binary_size(report.pattern_bytes));
}

// One line of the table. Missing figures are empty.
struct Row {
  std::string pass, phase, steps, compute, exchange, cycles, planned, moved;
};
void write_row(const Row& row, Out out) {
  fmt::format_to(out, "{:<8}{:<22}{:>6}{:>12}{:>12}{:>12}{:>12}{:>12}\n", row.pass, row.phase,
                 row.steps, row.compute, row.exchange, row.cycles, row.planned, row.moved);
}

void write_pass(const LayerReport& report, const PassReport& pass, Out out) {
  std::string name = to_string(pass.pass);
  Cycles overhead;
  for (const device::PhaseTotal& phase : pass.ledger.phases()) {
    write_row(
        {name, std::string(to_string(phase.phase)), std::to_string(phase.steps),
         grouped(phase.compute.value), grouped(phase.exchange.value), grouped(phase.busy().value),
         grouped(planned_cycles(report, pass.pass, phase.phase).value), binary_size(phase.moved)},
        out);
    overhead += phase.overhead;
    name.clear();
  }
  write_row({"", std::string(to_string(Phase::Overhead)), "", "", "", grouped(overhead.value),
             grouped(planned_cycles(report, pass.pass, Phase::Overhead).value), ""},
            out);
  const planner::PassCost* planned = report.plan.cost.find(pass.pass);
  write_row({"", "total", std::to_string(pass.ledger.steps.size()), "", "",
             grouped(pass.ledger.total().value),
             planned != nullptr ? grouped(planned->cycles().value) : "-",
             binary_size(pass.ledger.moved())},
            out);
}

// Writes the longest step of each pass and its slowest tile.
void write_imbalance(const LayerReport& report, Out out) {
  fmt::format_to(out, "\n{:<8}{:<24}{:>12}{:>14}{:>16}{:>22}\n", "pass", "longest step", "cycles",
                 "slowest tile", "slowest / mean", "of all compute steps");
  for (const PassReport& pass : report.passes) {
    const Imbalance uneven = imbalance(pass.ledger);
    if (uneven.longest_step < 0) continue;
    const device::StepRecord& step = pass.ledger.steps[std::size_t(uneven.longest_step)];
    fmt::format_to(out, "{:<8}{:<24}{:>12}{:>14}{:>16.2f}{:>22.2f}\n", to_string(pass.pass),
                   fmt::format("{} {}", uneven.longest_step + 1, to_string(step.phase)),
                   grouped(step.cycles.value), step.critical_tile.value, uneven.of_longest,
                   uneven.of_compute);
  }
}

// Returns PASS only if at least one result was checked.
std::string_view outcome(const LayerReport& report) {
  const bool checked = std::any_of(report.passes.begin(), report.passes.end(),
                                   [](const PassReport& p) { return p.verdict.has_value(); });
  return !report.ok() ? "FAIL" : checked ? "PASS" : "UNCHECKED";
}

void write_verdicts(const LayerReport& report, Out out) {
  Cycles total;
  for (const PassReport& pass : report.passes) {
    total += pass.ledger.total();
    fmt::format_to(out, "{:<8}{}\n", to_string(pass.pass),
                   pass.verdict ? to_string(*pass.verdict) : "not checked");
  }
  const double seconds = double(total.value) / report.machine.clock_hz;
  const double flops = 2.0 * double(report.spill.blocks * report.grid.block.area()) *
                       double(report.problem.size.z) * double(report.passes.size());
  fmt::format_to(out, "{}: {} modelled cycles, {:.1f} us, {:.1f} useful GFLOP/s\n", outcome(report),
                 grouped(total.value), seconds * 1e6, seconds > 0 ? flops / seconds / 1e9 : 0.0);
}

// Writes whether sparse pays.
void write_comparison(const LayerReport& report, Out out) {
  if (const auto comparison = dense_comparison(report))
    write_parts("verdict", verdict_parts(*comparison), out);
}

void write_passes(const LayerReport& report, Out out) {
  *out = '\n';
  write_row({"pass", "phase", "steps", "compute", "exchange", "cycles", "planned", "moved"}, out);
  for (const PassReport& pass : report.passes) write_pass(report, pass, out);
  fmt::format_to(out, "cycles are modelled from counted work; bytes moved are counted\n");
  write_imbalance(report, out);
  *out = '\n';
  write_verdicts(report, out);
}

}  // namespace

Cycles planned_cycles(const LayerReport& report, Pass pass, Phase phase) {
  Cycles sum;
  const bool buckets_travel = report.plan.layout_of(pass).grad_w_exchange_buckets;
  if (const planner::PassCost* cost = report.plan.cost.find(pass))
    for (const planner::CostTerm& term : cost->terms)
      if (planner::phase_of(term.name, pass, buckets_travel) == phase) sum += term.cycles;
  return sum;
}

std::optional<DenseComparison> dense_comparison(const LayerReport& report) {
  const bool runs_dense = report.plan.dense.has_value();
  const SparseAlternative& sparse = report.sparse;
  const bool is_known = runs_dense ? sparse.plan || !sparse.reason.empty()
                                   : report.dense.plan || !report.dense.reason.empty();
  if (!is_known) return std::nullopt;
  std::vector<PassCycles> own;
  for (const PassReport& pass : report.passes) own.push_back({pass.pass, pass.ledger.total()});
  if (report.passes.empty()) own = pass_cycles(report.plan.cost);
  DenseComparison comparison =
      runs_dense ? compare_dense_run(own, report.plan.dense->partials_type, sparse)
                 : compare_cycles(report.static_plan ? "static" : representation_name(report.plan),
                                  own, report.dense);
  comparison.density = report.problem.density;
  comparison.outlook = report.outlook;
  return comparison;
}

bool LayerReport::ok() const {
  return std::all_of(passes.begin(), passes.end(),
                     [](const PassReport& p) { return !p.verdict || p.verdict->ok(); });
}

std::string to_text(const LayerReport& report) {
  std::string text;
  const Out out(text);
  internal::write_layer(report.source, report.problem, out);
  write_machine(report, out);
  write_plan(report, out);
  fmt::format_to(out, "operands  {} ({})\n", description_of(report.plan.operand_placement),
                 to_string(report.plan.operand_placement));
  const bool is_static = report.static_plan.has_value();
  if (!report.plan.dense && !is_static) write_buckets(report, out);
  if (!is_static) write_pattern(report, out);
  if (!report.passes.empty()) write_passes(report, out);
  write_comparison(report, out);
  return text;
}

}  // namespace tessera::report
