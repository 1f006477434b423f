#include "tessera/runtime/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

namespace tessera::runtime {
namespace {

using Out = std::back_insert_iterator<std::string>;

// 1234567 -> "1,234,567", for n >= 0
std::string grouped(std::int64_t n) {
  const std::string digits = fmt::format("{}", n);
  std::string result;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i != 0 && (digits.size() - i) % 3 == 0) result += ',';
    result += digits[i];
  }
  return result;
}

std::string binary_size(Bytes bytes) {
  if (bytes.value >= 1024 * 1024) return fmt::format("{:.1f} MiB", double(bytes.value) / 1048576);
  if (bytes.value >= 1024) return fmt::format("{:.1f} KiB", double(bytes.value) / 1024);
  return fmt::format("{} B", bytes.value);
}

double percent(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0.0 : 100.0 * double(part) / double(whole);
}

constexpr std::string_view kOverhead = "sync, launch";

std::string block_name(BlockShape block) {
  return block.is_element() ? "elements" : fmt::format("{}x{} blocks", block.rows, block.cols);
}

void write_layer(const LayerReport& report, Out out) {
  const planner::Problem& p = report.problem;
  const device::Machine& m = report.machine;
  const std::int64_t all = p.size.x * p.size.y / p.block.area();
  fmt::format_to(out, "weights   {}\n", report.source);
  fmt::format_to(out,
                 "layer     x {} outputs, y {} inputs, z {} batch; {}, sums {}; {} {} of {} "
                 "(density {:.4f})\n",
                 p.size.x, p.size.y, p.size.z, to_string(p.data_type), to_string(p.partials_type),
                 grouped(report.spill.blocks * report.grid.block.area() / p.block.area()),
                 block_name(p.block), grouped(all), p.density);
  fmt::format_to(out, "machine   {}: {} tiles of {}, {:.3f} GHz\n", m.name, grouped(m.tiles),
                 binary_size(m.tile_memory), m.clock_hz / 1e9);
}

void write_plan(const LayerReport& report, Out out) {
  const planner::Plan& plan = report.plan;
  fmt::format_to(out, "plan      x {} * y {} * z {} = {} tiles; {}", plan.partition.x,
                 plan.partition.y, plan.partition.z, grouped(plan.tiles_used()),
                 to_string(plan.fwd));
  if (report.problem.grad_a) fmt::format_to(out, ", {}", to_string(plan.grad_a));
  if (report.problem.grad_w)
    fmt::format_to(out, ", {} ({} travel)", to_string(plan.grad_w),
                   plan.grad_w_exchange_buckets ? "buckets" : "operands");
  if (plan.block != report.problem.block) fmt::format_to(out, "; as {}", block_name(plan.block));
  fmt::format_to(out, "\n          bucket of {} values and {} words", plan.nonzeros_per_bucket,
                 plan.fwd_meta_words.value);
  if (plan.grad_a_meta_words > Words{})
    fmt::format_to(out, " + {} for GradA", plan.grad_a_meta_words.value);
  fmt::format_to(out, "; fullest tile {} of {}\n", binary_size(report.high_water),
                 binary_size(report.machine.tile_memory));
}

void write_buckets(const LayerReport& report, Out out) {
  const partitioner::SpillStats& s = report.spill;
  fmt::format_to(out, "buckets   {} records; fullest holds {} of {} values, {} of {} words\n",
                 grouped(s.records), s.fullest_blocks * report.grid.block.area(),
                 report.plan.nonzeros_per_bucket, s.fullest_words, report.grid.meta_words);
  fmt::format_to(out, "spilled   {} of {} ({:.2f} %)", grouped(s.moved_blocks), grouped(s.blocks),
                 percent(s.moved_blocks, s.blocks));
  if (!report.travel.stays_home())
    fmt::format_to(out, "; travel up to {} steps along x, {} along y", report.travel.x_end() - 1,
                   report.travel.largest_y_end() - 1);
  fmt::format_to(out, "\n");
}

// Under which phase of a run a term of the plan's cost belongs; terms of memory alone belong
// nowhere.
std::string_view phase_of(planner::Pass pass, std::string_view term, bool buckets_travel) {
  if (term == "exchange operands") return "pre-arrange";
  if (term == "transpose values") return "transpose";
  if (term == "rearrange operands") return "rearrange";
  if (term == "multiply") return "distribute";
  if (term == "exchange along z") return buckets_travel ? "propagate" : "distribute";
  if (term == "exchange sums" || term == "reduce sums") return "reduce";
  if (term == "cast sums") return pass == planner::Pass::GradW ? "cast" : "reduce";
  if (term == "barriers and launches") return kOverhead;
  return {};
}

Cycles planned_for(const LayerReport& report, planner::Pass pass, std::string_view phase) {
  Cycles sum;
  if (const planner::PassCost* cost = report.plan.cost.find(pass))
    for (const planner::CostTerm& term : cost->terms)
      if (phase_of(pass, term.name, report.plan.grad_w_exchange_buckets) == phase)
        sum += term.cycles;
  return sum;
}

// A line of the table; figures of a row that has none are empty.
struct Row {
  std::string pass, phase, steps, compute, exchange, cycles, planned, moved;
};
void write_row(const Row& row, Out out) {
  fmt::format_to(out, "{:<8}{:<13}{:>6}{:>12}{:>12}{:>12}{:>12}{:>12}\n", row.pass, row.phase,
                 row.steps, row.compute, row.exchange, row.cycles, row.planned, row.moved);
}

void write_pass(const LayerReport& report, const PassReport& pass, Out out) {
  std::string name = planner::to_string(pass.pass);
  Cycles overhead;
  for (const device::PhaseTotal& phase : pass.ledger.phases()) {
    write_row(
        {name, phase.phase, std::to_string(phase.steps), grouped(phase.compute.value),
         grouped(phase.exchange.value), grouped((phase.compute + phase.exchange).value),
         grouped(planned_for(report, pass.pass, phase.phase).value), binary_size(phase.moved)},
        out);
    overhead += phase.overhead;
    name.clear();
  }
  write_row({"", std::string(kOverhead), "", "", "", grouped(overhead.value),
             grouped(planned_for(report, pass.pass, kOverhead).value), ""},
            out);
  const planner::PassCost* planned = report.plan.cost.find(pass.pass);
  write_row({"", "total", std::to_string(pass.ledger.steps.size()), "", "",
             grouped(pass.ledger.total().value),
             planned != nullptr ? grouped(planned->cycles().value) : "-",
             binary_size(pass.ledger.moved())},
            out);
}

void write_verdicts(const LayerReport& report, Out out) {
  Cycles total;
  for (const PassReport& pass : report.passes) {
    total += pass.ledger.total();
    fmt::format_to(out, "{:<8}{}\n", planner::to_string(pass.pass),
                   pass.verdict ? to_string(*pass.verdict) : "not checked");
  }
  const double seconds = double(total.value) / report.machine.clock_hz;
  const double flops = 2.0 * double(report.spill.blocks * report.grid.block.area()) *
                       double(report.problem.size.z) * double(report.passes.size());
  const std::optional<Cycles> bound = dense_bound(report.problem, report.machine);
  fmt::format_to(
      out, "{}: {} modelled cycles, {:.1f} us, {:.1f} useful GFLOP/s; dense at peak: {} a pass\n",
      report.ok() ? "PASS" : "FAIL", grouped(total.value), seconds * 1e6,
      seconds > 0 ? flops / seconds / 1e9 : 0.0, bound ? grouped(bound->value) : "-");
}

}  // namespace

std::optional<Cycles> dense_bound(const planner::Problem& problem, const device::Machine& machine) {
  const std::int64_t units = machine.conv_units(problem.data_type, problem.partials_type);
  if (units == 0) return std::nullopt;
  const std::int64_t products_per_unit = problem.data_type == DataType::Half ? 4 : 2;
  return Cycles(ceil_div(checked_mul(checked_mul(problem.size.x, problem.size.y, "dense products"),
                                     problem.size.z, "dense products"),
                         machine.tiles * units * products_per_unit));
}

bool LayerReport::ok() const {
  return std::all_of(passes.begin(), passes.end(),
                     [](const PassReport& p) { return !p.verdict || p.verdict->ok(); });
}

std::string to_text(const LayerReport& report) {
  std::string text;
  const Out out(text);
  write_layer(report, out);
  write_plan(report, out);
  write_buckets(report, out);
  text += "\n";
  write_row({"pass", "phase", "steps", "compute", "exchange", "cycles", "planned", "moved"}, out);
  for (const PassReport& pass : report.passes) write_pass(report, pass, out);
  fmt::format_to(out, "cycles are modelled from counted work; bytes moved are counted\n\n");
  write_verdicts(report, out);
  return text;
}

}  // namespace tessera::runtime
