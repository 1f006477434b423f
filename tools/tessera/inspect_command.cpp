#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tessera/tools/block_study.hpp"
#include "tessera/tools/dense_verdict.hpp"
#include "tessera/tools/exit_code.hpp"
#include "tessera/tools/inputs.hpp"
#include "tessera/tools/internal/layer_options.hpp"
#include "tessera/tools/internal/manual.hpp"
#include "tessera/tools/internal/progress.hpp"
#include "tessera/tools/tessera/commands.hpp"

namespace tessera::tools {
namespace {

// Returns a line about the distribution of non-zeros over the rows or columns.
std::string spread(const char* what, const std::vector<std::int64_t>& counts) {
  const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
  double sum = 0, squares = 0;
  for (const std::int64_t n : counts) sum += double(n), squares += double(n) * double(n);
  const double mean = sum / double(counts.size());
  const double deviation = std::sqrt(std::max(0.0, squares / double(counts.size()) - mean * mean));
  return fmt::format("{:<10}{:>12}{:>10}{:>12.2f}{:>10}{:>14.2f}{:>14.2f}\n", what, counts.size(),
                     *least, mean, *most, mean > 0 ? double(*most) / mean : 0,
                     mean > 0 ? deviation / mean : 0);
}

std::vector<std::int64_t> row_counts(const sparse::Csr<double>& m) {
  std::vector<std::int64_t> counts;
  for (std::size_t r = 1; r < m.row_begin.size(); ++r)
    counts.push_back(m.row_begin[r] - m.row_begin[r - 1]);
  return counts;
}

std::vector<std::int64_t> column_counts(const sparse::Csr<double>& m) {
  std::vector<std::int64_t> counts(std::size_t(m.cols));
  for (const std::int32_t column : m.col) ++counts[std::size_t(column)];
  return counts;
}

std::string line_of(const BlockPlan& s) {
  return fmt::format("{:<10}{:>12}{:>14.4f}{:>14.1f}{:>14}{:>14}\n", s.name(), s.blocks, s.density,
                     s.filled_percent, s.plan ? std::to_string(s.cycles.value) : "no plan",
                     s.plan ? s.plan->tiles_used() : 0);
}

std::string dense_line(const planner::DensePlanResult& dense) {
  const auto& plan = dense.plan;
  return fmt::format("{:<10}{:>12}{:>14.4f}{:>14}{:>14}{:>14}\n", "dense", "-", 1.0, "-",
                     plan ? std::to_string(plan->cost.cycles.value) : "no plan",
                     plan ? plan->groups * plan->passes.front().parts.product() : 0);
}

// Returns whether the cheapest blocks pay.
std::string verdict_of(const std::vector<BlockPlan>& sides, const planner::DensePlanResult& dense,
                       BlockStudy& study, const sparse::Csr<double>& ones) {
  const BlockPlan* best = cheapest_of(sides);
  if (best == nullptr) return "verdict    no blocks have a plan\n";
  report::DenseComparison comparison = report::compare_cycles(
      best->name() + " blocks", report::pass_cycles(best->plan->cost), dense);
  comparison.density = best->density;
  comparison.outlook = outlook_of(comparison, study, best->block, dense, &ones, &*best->plan);
  return internal::wrapped(verdict_line(comparison), /*indented=*/11, /*flush=*/11);
}

int inspect(const LayerArguments& given) {
  LayerArguments a = with_layer_keys(given);
  internal::Progress progress(false);
  progress.set("reading " + a.matrix);
  io::ReadMatrix file = load_weights(a.matrix, {.keeps_order = false});
  const std::int64_t zeros = std::count(file.matrix.values.begin(), file.matrix.values.end(), 0.0);
  sparse::Csr<double> ones = std::move(file.matrix);  // a large one is not kept twice
  std::fill(ones.values.begin(), ones.values.end(), 1.0);
  std::string text = fmt::format(
      "{}\n{} outputs x {} inputs, {} non-zeros (density {:.6f}), {}; {} stored zeros\n\n",
      a.matrix, ones.rows, ones.cols, ones.blocks(),
      double(ones.blocks()) / (double(ones.rows) * double(ones.cols)),
      file.has_values ? "with values" : "a pattern", file.has_values ? zeros : 0);
  text += fmt::format("{:<10}{:>12}{:>10}{:>12}{:>10}{:>14}{:>14}\n", "non-zeros", "count", "least",
                      "mean", "most", "most / mean", "deviation");
  text += spread("rows", row_counts(ones)) + spread("columns", column_counts(ones));
  text += fmt::format("\n{:<10}{:>12}{:>14}{:>14}{:>14}{:>14}\n", "blocks", "stored", "density",
                      "filled, %", "cycles", "tiles");
  a.output_size = ones.rows;
  a.input_size = ones.cols;
  BlockStudy study(a);
  std::vector<BlockPlan> sides;
  for (const std::int64_t side : kBlockSides) {
    progress.set(fmt::format("planning {0}x{0} blocks", side), std::ssize(sides),
                 std::ssize(kBlockSides));
    sides.push_back(study.plan_pattern(ones, {side, side}));
    text += line_of(sides.back());
  }
  const auto dense = study.dense();
  progress.set("comparing with dense");
  const std::string verdict = verdict_of(sides, dense, study, ones);
  progress.hide();
  print_text(text + dense_line(dense) +
             fmt::format("cycles are planned for a batch of {} on {}\n", a.batch_size, a.machine) +
             verdict);
  return kOk;
}

}  // namespace

void add_inspect_command(CLI::App& app, std::function<int()>& run) {
  CLI::App* command = app.add_subcommand(
      "inspect",
      "Prints the size, density, balance and block fill of weights, and their planned cost.");
  command->footer(std::string(internal::kExitCodes) +
                  "\nExample: tessera inspect data/face_conv2d_24.mtx --batch-size 64");
  const auto a = std::make_shared<LayerArguments>();
  command->add_option("file", a->matrix, "file of weights, in any format that --matrix reads")
      ->required();
  internal::add_layer_options(*command, *a);
  internal::add_machine_options(*command, *a);
  command->remove_option(command->get_option("--block-size"));  // every block is planned
  command->callback([a, &run] { run = [a] { return inspect(*a); }; });
}

}  // namespace tessera::tools
