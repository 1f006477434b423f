#include <fmt/format.h>

#include <functional>
#include <iterator>

#include "tessera/bench/planner/quality.hpp"

namespace tessera::bench {
namespace {

using Out = std::back_insert_iterator<std::string>;

std::string layer_text(const Problem& p) {
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

// Returns the share of the blocks that were spilled.
std::string spilled_text(const Run& run) {
  if (!run.report) return "-";
  const partitioner::SpillStats& s = run.report->spill;
  return fmt::format("{:.1f}%",
                     s.blocks == 0 ? 0.0 : 100.0 * double(s.moved_blocks) / double(s.blocks));
}

// A column of the table with two lines of heading; it is aligned to the left if the width is
// negative.
struct Column {
  std::string head, below;
  int width = 0;
  std::function<std::string(const Comparison&)> text;
};

Column cycles_column(const char* kind, const char* of, const Run Comparison::* run,
                     std::optional<Cycles> (Run::*figure)() const) {
  return {kind, of, 9, [=](const Comparison& c) { return cycles_text(((c.*run).*figure)()); }};
}

Column ratio_column(const char* head, const char* below, Ratio ratio) {
  return {head, below, 7, [=](const Comparison& c) { return ratio_text((c.*ratio)()); }};
}

std::vector<Column> columns_for(const std::vector<Comparison>& comparisons) {
  std::vector<Column> columns = {
      {"row", "", -16, [](const Comparison& c) { return c.name; }},
      {"x*y*z block density", "", -35, [](const Comparison& c) { return layer_text(c.problem); }},
      {"PopLibs", "", 10, [](const Comparison& c) { return partition_text(c.poplibs_partition); }},
      {"ours", "", 10,
       [](const Comparison& c) {
         return c.ours.report ? partition_text(c.ours.report->plan.partition) : "none";
       }},
      cycles_column("planned", "ours", &Comparison::ours, &Run::planned),
      cycles_column("simulated", "ours", &Comparison::ours, &Run::simulated),
      cycles_column("planned", "pinned", &Comparison::pinned, &Run::planned),
      cycles_column("simulated", "pinned", &Comparison::pinned, &Run::simulated),
      ratio_column("ratio", "", &Comparison::to_pinned),
      ratio_column("ratio", "planned", &Comparison::planned_to_pinned),
      cycles_column("simulated", "PopLibs", &Comparison::as_poplibs, &Run::simulated),
      {"spilled", "PopLibs", 7, [](const Comparison& c) { return spilled_text(c.as_poplibs); }},
      ratio_column("ratio", "PopLibs", &Comparison::to_poplibs),
      ratio_column("ratio", "usual", &Comparison::usual_to_pinned)};
  const auto add_if_any = [&](const char* below, Ratio ratio) {
    if (!ratios_of(comparisons, ratio).empty())
      columns.push_back(ratio_column("ratio", below, ratio));
  };
  add_if_any("nearby", &Comparison::nearby_to_pinned);
  add_if_any("many", &Comparison::patterns_to_pinned);
  return columns;
}

void write_cell(const std::string& text, int width, Out out) {
  if (width < 0)
    fmt::format_to(out, "{:<{}} ", text, -width);
  else
    fmt::format_to(out, "{:>{}} ", text, width);
}

void write_table(const std::vector<Comparison>& comparisons, Out out) {
  const std::vector<Column> columns = columns_for(comparisons);
  for (const Column& column : columns) write_cell(column.head, column.width, out);
  fmt::format_to(out, "\n");
  for (const Column& column : columns) write_cell(column.below, column.width, out);
  fmt::format_to(out, "\n");
  for (const Comparison& c : comparisons) {
    for (const Column& column : columns) write_cell(column.text(c), column.width, out);
    fmt::format_to(out, "\n");
  }
}

// Formats the reason why there is no run, and the run itself if `verbose`.
void write_run(const std::string& layer, const char* plan, const Run& run, bool verbose, Out out) {
  if (!run.report)
    fmt::format_to(out, "\n==== {}, {}: {}\n", layer, plan, run.failure);
  else if (verbose)
    fmt::format_to(out, "\n==== {}, {}\n{}", layer, plan, report::to_text(*run.report));
}

void write_summary(const char* name, const std::vector<Comparison>& comparisons, Ratio ratio,
                   Out out) {
  const Ratios ratios = ratios_of(comparisons, ratio);
  if (!ratios.empty())
    fmt::format_to(out, "{:<24} geometric mean {:.3f}, worst {:.3f}, of {}\n", name, ratios.mean(),
                   ratios.largest(), ratios.count());
}

}  // namespace

std::string to_text(const std::vector<Comparison>& comparisons, bool verbose) {
  std::string text;
  const Out out(text);
  write_table(comparisons, out);
  write_summary("ratio", comparisons, &Comparison::to_pinned, out);
  write_summary("ratio, planned", comparisons, &Comparison::planned_to_pinned, out);
  write_summary("ratio, PopLibs' plan", comparisons, &Comparison::to_poplibs, out);
  write_summary("ratio, usual options", comparisons, &Comparison::usual_to_pinned, out);
  write_summary("ratio, nearby", comparisons, &Comparison::nearby_to_pinned, out);
  write_summary("ratio, all patterns", comparisons, &Comparison::patterns_to_pinned, out);
  for (const Comparison& c : comparisons) {
    write_run(c.name, "ours", c.ours, verbose, out);
    write_run(c.name, "usual options", c.usual, verbose, out);
    write_run(c.name, "PopLibs' partition", c.pinned, verbose, out);
    write_run(c.name, "PopLibs' plan", c.as_poplibs, verbose, out);
  }
  return text;
}

}  // namespace tessera::bench
