#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/tools/exit_code.hpp"
#include "tessera/tools/inputs.hpp"
#include "tessera/tools/internal/layer_options.hpp"
#include "tessera/tools/tessera/commands.hpp"

namespace tessera::inline v0::tools {
namespace {

struct SweepArguments : LayerArguments {
  std::string over;
  std::vector<double> values;
  bool csv = false;
};

// One layer on one machine.
struct Point {
  planner::Problem problem;
  device::Machine machine;
};

planner::Problem problem_of(const LayerArguments& a) {
  return {.size = {1, a.output_size, a.input_size, a.batch_size},
          .block = a.block,
          .density = a.density,
          .data_type = a.data_type,
          .partials_type = a.partials_type,
          .grad_a = a.grad_a(),
          .grad_w = a.grad_w()};
}

std::int64_t whole(double value, const std::string& what) {
  if (value >= 1 && value <= 1e12 && value == std::floor(value)) return std::int64_t(value);
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("--values: {} is {}; it must be a whole number from 1", what, value));
}

Point point_of(const SweepArguments& a, double value) {
  Point p{problem_of(a), make_machine(a)};
  if (a.over == "density") {
    p.problem.density = value;
    return p;
  }
  const std::int64_t n = whole(value, a.over);
  if (a.over == "tiles") p.machine.tiles = n;
  if (a.over == "memory") p.machine.tile_memory = Bytes(n);
  if (a.over == "exchange") p.machine.exchange_bytes_per_cycle = n;
  if (a.over == "batch") p.problem.size.z = n;
  if (a.over == "block") p.problem.block = {n, n};
  device::check_machine(p.machine, "--values");
  return p;
}

std::string bar(std::int64_t cycles, std::int64_t most) {
  constexpr std::int64_t kWidth = 40;
  return std::string(std::size_t(std::max<std::int64_t>(1, kWidth * cycles / most)), '#');
}

int sweep(const SweepArguments& given) {
  SweepArguments a = given;
  static_cast<LayerArguments&>(a) = with_layer_keys(given);
  PlanSource source(a.plan_cache);
  std::vector<planner::PlanResult> results;
  std::int64_t most = 1;
  for (const double value : a.values) {
    const Point p = point_of(a, value);
    results.push_back(source.plan(p.problem, p.machine, make_options(a, {})));
    if (results.back().has_plan) most = std::max(most, results.back().plan.cost.cycles.value);
  }
  std::string text = a.csv ? fmt::format("{},cycles,tiles,temporary_bytes\n", a.over)
                           : fmt::format("{:<12}{:>14}{:>8}{:>18}  \n", a.over, "cycles", "tiles",
                                         "temporary bytes");
  for (std::size_t i = 0; i < results.size(); ++i) {
    const planner::Plan& plan = results[i].plan;
    if (!results[i].has_plan) {
      text += a.csv ? fmt::format("{},,,\n", a.values[i])
                    : fmt::format("{:<12}{:>14}\n", a.values[i], "no plan");
      continue;
    }
    const std::int64_t cycles = plan.cost.cycles.value;
    text += a.csv ? fmt::format("{},{},{},{}\n", a.values[i], cycles, plan.tiles_used(),
                                plan.cost.temp.value)
                  : fmt::format("{:<12}{:>14}{:>8}{:>18}  {}\n", a.values[i], cycles,
                                plan.tiles_used(), plan.cost.temp.value, bar(cycles, most));
  }
  print_results(text);
  return kOk;
}

}  // namespace

void add_sweep_command(CLI::App& app, std::function<int()>& run) {
  CLI::App* command = app.add_subcommand(
      "sweep",
      "Plans one layer while one figure of it or of the machine changes: a table and a "
      "bar for each value.");
  command->footer(std::string(internal::kExitCodes) +
                  "\nExample: tessera sweep --over tiles --values 368,736,1472 --input-size 1024 "
                  "--output-size 1024 --density 0.1 --batch-size 64");
  const auto a = std::make_shared<SweepArguments>();
  command
      ->add_option("--over", a->over,
                   "tiles, memory (bytes of a tile), exchange (bytes received a cycle), density, "
                   "block or batch")
      ->check(CLI::IsMember({"tiles", "memory", "exchange", "density", "block", "batch"}))
      ->required();
  command->add_option("--values", a->values, "what it becomes, between commas")
      ->delimiter(',')
      ->required();
  command->add_flag("--csv", a->csv, "print the table as CSV");
  internal::add_weights_options(*command, *a);
  internal::add_layer_options(*command, *a);
  internal::add_machine_options(*command, *a);
  internal::add_planner_options(*command, *a);
  command->remove_option(command->get_option("--plan"));
  command->remove_option(command->get_option("--on-no-fit"));
  command->callback([command, a, &run] {
    if (!a->matrix.empty())
      throw CLI::ValidationError("--matrix", "a sweep is of random patterns; give sizes");
    if (a->over == "density") a->density = a->values.front();
    internal::require_weights(*command, *a);
    run = [a] { return sweep(*a); };
  });
}

}  // namespace tessera::inline v0::tools
