#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/tools/exit_code.hpp"
#include "tessera/tools/inputs.hpp"
#include "tessera/tools/internal/interrupt.hpp"
#include "tessera/tools/internal/layer_options.hpp"
#include "tessera/tools/internal/progress.hpp"
#include "tessera/tools/internal/study.hpp"
#include "tessera/tools/tessera/commands.hpp"

namespace tessera::tools {
namespace {

using Json = nlohmann::ordered_json;

struct SweepArguments : LayerArguments {
  std::string over;
  std::vector<double> values;
  bool csv = false;
  internal::StudyOutput output;
};

// A layer on one machine.
struct Point {
  Problem problem;
  device::Machine machine;
};

std::int64_t whole(double value, const std::string& what) {
  if (value >= 1 && value <= 1e12 && value == std::floor(value)) return std::int64_t(value);
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("--values: {} is {}; it must be a whole number in 1..1e12", what, value));
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

std::string csv_of(const SweepArguments& a, const std::vector<planner::PlanResult>& results) {
  std::string text = fmt::format("{},cycles,tiles,temporary_bytes\n", a.over);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const planner::Plan& plan = results[i].plan;
    text += results[i].has_plan ? fmt::format("{},{},{},{}\n", a.values[i], plan.cost.cycles.value,
                                              plan.tiles_used(), plan.cost.temp.value)
                                : fmt::format("{},,,\n", a.values[i]);
  }
  return text;
}

std::string table_of(const SweepArguments& a, const std::vector<planner::PlanResult>& results) {
  std::int64_t most = 1;
  for (const planner::PlanResult& result : results)
    if (result.has_plan) most = std::max(most, result.plan.cost.cycles.value);
  std::string text =
      fmt::format("{:<12}{:>14}{:>8}{:>18}  \n", a.over, "cycles", "tiles", "temporary bytes");
  for (std::size_t i = 0; i < results.size(); ++i) {
    const planner::Plan& plan = results[i].plan;
    text += results[i].has_plan
                ? fmt::format("{:<12}{:>14}{:>8}{:>18}  {}\n", a.values[i], plan.cost.cycles.value,
                              plan.tiles_used(), plan.cost.temp.value,
                              bar(plan.cost.cycles.value, most))
                : fmt::format("{:<12}{:>14}\n", a.values[i], "no plan");
  }
  return text;
}

std::string json_of(const SweepArguments& a, const std::vector<planner::PlanResult>& results) {
  const std::string unit = a.over == "memory"     ? "bytes of a tile"
                           : a.over == "exchange" ? "bytes received a cycle"
                                                  : "";
  Json points = Json::array();
  for (std::size_t i = 0; i < results.size(); ++i) {
    const bool has_plan = results[i].has_plan;
    const planner::Plan& plan = results[i].plan;
    points.push_back({{"value", a.values[i]},
                      {"cycles", has_plan ? Json(plan.cost.cycles.value) : Json(nullptr)},
                      {"tiles", has_plan ? Json(plan.tiles_used()) : Json(nullptr)},
                      {"temporary_bytes", has_plan ? Json(plan.cost.temp.value) : Json(nullptr)}});
  }
  return Json{{"schema_version", 1},
              {"study", "sweep"},
              {"status", results.size() == a.values.size() ? "complete" : "partial"},
              {"layer", internal::layer_words(problem_of(a))},
              {"machine", make_machine(a).name},
              {"over", a.over},
              {"unit", unit},
              {"points", std::move(points)}}
             .dump(2) +
         "\n";
}

std::string text_of(const SweepArguments& a, const std::vector<planner::PlanResult>& results) {
  return a.csv ? csv_of(a, results) : table_of(a, results);
}

// Returns the plans of all values; fewer after Ctrl-C.
std::vector<planner::PlanResult> plan_all(const SweepArguments& a) {
  PlanSource source(a.plan_cache);
  internal::catch_interrupts();
  internal::Progress progress(false);
  std::vector<planner::PlanResult> results;
  for (const double value : a.values) {
    if (internal::is_interrupted()) break;
    internal::set_results_so_far(a.output.json ? json_of(a, results) : text_of(a, results));
    progress.set(fmt::format("planning {} {}", a.over, value), std::ssize(results),
                 std::ssize(a.values));
    const Point p = point_of(a, value);
    results.push_back(source.plan(p.problem, p.machine, make_options(a, {})));
  }
  return results;
}

int sweep(const SweepArguments& given) {
  SweepArguments a = given;
  static_cast<LayerArguments&>(a) = with_layer_keys(given);
  const std::vector<planner::PlanResult> results = plan_all(a);
  return internal::write_study(a.output, text_of(a, results), json_of(a, results));
}

}  // namespace

void add_sweep_command(CLI::App& app, std::function<int()>& run) {
  CLI::App* command =
      app.add_subcommand("sweep",
                         "Plans one layer for several values of one figure of the layer or the "
                         "machine, and prints a table with a bar for each value.");
  command->footer(
      std::string(internal::kExitCodes) +
      "\nExample: tessera sweep --over tiles --values 368,736,1472 --input-size 1024 \\\n"
      "           --output-size 1024 --density 0.1 --batch-size 64 --html sweep.html");
  const auto a = std::make_shared<SweepArguments>();
  command
      ->add_option("--over", a->over,
                   "figure to vary: tiles, memory (bytes per tile), exchange (bytes received per "
                   "cycle), density, block or batch")
      ->check(CLI::IsMember({"tiles", "memory", "exchange", "density", "block", "batch"})
                  .description(""))
      ->required();
  command->add_option("--values", a->values, "values of that figure, separated by commas")
      ->delimiter(',')
      ->required();
  auto* csv = command->add_flag("--csv", a->csv, "print the table as CSV");
  internal::add_study_options(*command, a->output);
  csv->excludes("--json");
  internal::add_weights_options(*command, *a);
  internal::add_layer_options(*command, *a);
  internal::add_machine_options(*command, *a);
  internal::add_planner_options(*command, *a);
  command->remove_option(command->get_option("--plan"));
  command->remove_option(command->get_option("--on-no-fit"));
  command->callback([command, a, &run] {
    if (!a->matrix.empty())
      throw CLI::ValidationError(
          "--matrix",
          "sweep plans random patterns only; give --input-size, --output-size and --density");
    if (a->over == "density") a->density = a->values.front();
    internal::require_weights(*command, *a);
    run = [a] { return sweep(*a); };
  });
}

}  // namespace tessera::tools
