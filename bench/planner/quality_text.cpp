#include <fmt/format.h>

#include <iterator>

#include "tessera/bench/planner/quality.hpp"

namespace tessera::bench {
namespace {

using Out = std::back_insert_iterator<std::string>;

std::string layer_text(const planner::Problem& p) {
  return fmt::format("{}x{}x{} b{} {} {} {}", p.size.x, p.size.y, p.size.z, p.block.rows, p.density,
                     to_string(p.data_type), p.grad_w ? "all" : "fwd");
}

std::string partition_text(const Dims& parts) {
  return fmt::format("{}*{}*{}", parts.x, parts.y, parts.z);
}

std::string cycles_text(const std::optional<Cycles>& cycles) {
  return cycles ? std::to_string(cycles->value) : "none";
}

std::string ratio_text(const std::optional<double>& ratio) {
  return ratio ? fmt::format("{:.3f}", *ratio) : "-";
}

// Share of the blocks that were spilled.
std::string spilled_text(const Run& run) {
  if (!run.report) return "-";
  const partitioner::SpillStats& s = run.report->spill;
  return fmt::format("{:.1f}%",
                     s.blocks == 0 ? 0.0 : 100.0 * double(s.moved_blocks) / double(s.blocks));
}

constexpr const char* kLine =
    "{:<17} {:<35} {:>11} {:>11} {:>9} {:>9} {:>9} {:>9} {:>7} {:>7} {:>8} {:>9} {:>7}\n";

void write_head(Out out) {
  fmt::format_to(out, kLine, "row", "x*y*z block density", "PopLibs", "ours", "planned",
                 "simulated", "planned", "simulated", "ratio", "least", "spilled", "simulated",
                 "ratio");
  fmt::format_to(out, kLine, "", "", "partition", "partition", "ours", "ours", "pinned", "pinned",
                 "", "", "pinned", "told", "told");
}

void write_line(const Comparison& c, Out out) {
  fmt::format_to(out, kLine, c.name, layer_text(c.problem), partition_text(c.poplibs_partition),
                 c.ours.report ? partition_text(c.ours.report->plan.partition) : "none",
                 cycles_text(c.ours.planned()), cycles_text(c.ours.simulated()),
                 cycles_text(c.pinned.planned()), cycles_text(c.pinned.simulated()),
                 ratio_text(c.ratio()), ratio_text(c.least_ratio()), spilled_text(c.pinned),
                 c.pinned_told.report ? cycles_text(c.pinned_told.simulated()) : "-",
                 ratio_text(c.ratio_told()));
}

void write_run(const char* title, const Run& run, Out out) {
  if (run.report)
    fmt::format_to(out, "\n-- {}\n{}", title, runtime::to_text(*run.report));
  else if (!run.failure.empty())
    fmt::format_to(out, "\n-- {}: {}\n", title, run.failure);
}

template <class Ratio>
void write_summary(const char* name, const std::vector<Comparison>& comparisons, Ratio ratio,
                   Out out) {
  std::vector<std::optional<double>> ratios;
  for (const Comparison& c : comparisons) ratios.push_back((c.*ratio)());
  const Summary s = summary(ratios);
  if (s.count > 0)
    fmt::format_to(out, "{:<8} geometric mean {:.3f}, worst {:.3f}, of {}\n", name, s.mean, s.worst,
                   s.count);
}

}  // namespace

std::string to_text(const std::vector<Comparison>& comparisons, bool verbose) {
  std::string text;
  const Out out(text);
  write_head(out);
  for (const Comparison& c : comparisons) write_line(c, out);
  write_summary("ratio", comparisons, &Comparison::ratio, out);
  write_summary("least", comparisons, &Comparison::least_ratio, out);
  write_summary("told", comparisons, &Comparison::ratio_told, out);
  for (const Comparison& c : comparisons) {
    if (!verbose && c.ours.report && c.pinned.report) continue;
    fmt::format_to(out, "\n==== {} ====\n", c.name);
    if (verbose || !c.ours.report) write_run("ours", c.ours, out);
    if (verbose || !c.pinned.report) write_run("pinned", c.pinned, out);
    if (verbose) write_run("pinned, told the pattern", c.pinned_told, out);
  }
  return text;
}

}  // namespace tessera::bench
