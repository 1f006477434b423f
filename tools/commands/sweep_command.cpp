#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "tessera/base/wrapped.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/planner/options.hpp"
#include "tessera/study/pod_sweep.hpp"
#include "tessera/study/sweep.hpp"
#include "tessera/tools/commands/commands.hpp"
#include "tessera/tools/options/exit_code.hpp"
#include "tessera/tools/options/host_options.hpp"
#include "tessera/tools/options/interrupt.hpp"
#include "tessera/tools/options/layer_options.hpp"
#include "tessera/tools/options/models.hpp"
#include "tessera/tools/options/numbers.hpp"
#include "tessera/tools/options/pod_options.hpp"
#include "tessera/tools/options/progress.hpp"
#include "tessera/tools/options/study_output.hpp"

namespace tessera::tools {
namespace {

struct SweepArguments : LayerArguments {
  std::string over;
  std::vector<double> values;
  bool csv = false;
  StudyOutput output;
  std::vector<study::SweepAxis> axes;
  std::vector<std::int64_t> devices;  // of pods to plan the layer for; empty: no pods
};

std::string text_of(const SweepArguments& a, const study::Report& report) {
  const study::Table& table = report.tables.front();
  if (a.csv) return study::table_csv(table);
  std::string notes;
  if (a.devices.empty())
    notes = std::string("ratio: dense / sparse; flops of non-zeros only") +
            (is_host(a) ? "" : study::kDenseSums) + "\n";
  return study::table_text(table) + wrapped(notes + "verdict    " + report.verdict + "\n",
                                            /*indented=*/4, /*flush=*/11);
}

int sweep_pods(const SweepArguments& a) {
  Progress progress(false);
  planner::PlanCache cache(a.plan_cache);
  const std::int64_t points = 2 * std::ssize(a.devices);
  const study::Report report = study::sweep_devices(
      {problem_of(a), a.machine, make_machine(a), make_options(a, {}), a.devices}, cache,
      [&](std::int64_t devices, std::int64_t done) {
        progress.set(fmt::format("{} devices", devices), done, points);
        return !is_interrupted();
      });
  progress.hide();
  return write_study(a.output, report, text_of(a, report));
}

study::SweepRequest request_of(const SweepArguments& a) {
  study::SweepRequest request{
      .layer = {problem_of(a), is_host(a) ? device::machine_preset("gc200") : make_machine(a)},
      .axes = a.axes,
      .machine_name = a.machine};
  request.machine_words = is_host(a) ? host::host_cpu_model() : request.layer.machine.name;
  if (is_host(a)) {
    constexpr double kSpread = 0.03;
    request.model = [](const study::SweepPoint& at) { return measured_model(at.problem, kSpread); };
    return request;
  }
  const LayerArguments layer = a;
  request.model = [layer](const study::SweepPoint& at) {
    return planned_model(layer, at.problem, at.machine);
  };
  request.static_model =
      [layer, patterns = std::make_shared<study::DrawnPatterns>()](const study::SweepPoint& at) {
        return static_model(layer, at.problem, at.machine, patterns);
      };
  return request;
}

int sweep(const SweepArguments& given) {
  SweepArguments a = given;
  static_cast<LayerArguments&>(a) = with_layer_keys(given);
  // A mistake in the options is one of all points, and not the reason why a point has no plan.
  planner::check_options(make_options(a, {}));
  catch_interrupts();
  if (!a.devices.empty()) return sweep_pods(a);
  const auto sweep = std::make_shared<study::Sweep>(request_of(a));
  Progress progress(false);
  set_results_so_far([sweep, a] {
    const study::Report so_far = sweep->report();
    return a.output.json ? to_json(so_far) : text_of(a, so_far);
  });
  for (std::int64_t at = 0; at < sweep->points() && !is_interrupted(); ++at) {
    progress.set(fmt::format("point {} of {}", at + 1, sweep->points()), at, sweep->points());
    sweep->add(change_results);
  }
  progress.hide();
  const study::Report report = sweep->report();
  const int exit = write_study(a.output, report, text_of(a, report));
  return exit == kOk && !sweep->has_cost() ? int(kNothingFits) : exit;
}

// Refuses an option that gives one value of a figure that varies.
void refuse_varied_options(const CLI::App& app, const std::vector<study::SweepAxis>& axes) {
  constexpr std::pair<const char*, const char*> kOptions[] = {
      {"density", "--density"},     {"density", "--sparsity"},   {"density", "--sparsity-factor"},
      {"batch", "--batch-size"},    {"block", "--block-size"},   {"inputs", "--input-size"},
      {"outputs", "--output-size"}, {"tiles", "--tiles-per-ipu"}};
  for (const auto& [figure, option] : kOptions)
    if (app.count(option) > 0 &&
        std::ranges::find(axes, figure, &study::SweepAxis::figure) != axes.end())
      throw CLI::ValidationError(option,
                                 fmt::format("--over gives the values of {}; omit this", figure));
}

// A sweep over devices varies nothing else.
void check_devices(const CLI::App& app, const SweepArguments& a) {
  if (is_host(a))
    throw CLI::ValidationError("--devices", "takes a modelled machine, and --machine is host");
  for (const std::int64_t devices : a.devices) device::pod_of(make_machine(a), devices);
  // Efficiency is compared with the first pod.
  if (std::ranges::adjacent_find(a.devices, std::greater_equal()) != a.devices.end())
    throw CLI::ValidationError("--devices",
                               "every number must be greater than the one before it, as in 1,4,16");
  require_weights(app, a);
}

void check_together(const CLI::App& app, SweepArguments& a) {
  if (!a.matrix.empty())
    throw CLI::ValidationError(
        "--matrix",
        "sweep plans random patterns only; give --input-size, --output-size and --density");
  if (!a.devices.empty()) return check_devices(app, a);
  if (a.over.empty())
    throw CLI::ValidationError("--over", "is required, or --devices for a sweep over pods");
  a.axes = study::parse_axes(a.over, a.values);
  const auto has = [&](const char* figure) {
    return std::ranges::find(a.axes, figure, &study::SweepAxis::figure) != a.axes.end();
  };
  const auto first = [&](const char* figure) {
    return std::ranges::find(a.axes, figure, &study::SweepAxis::figure)->values.front();
  };
  refuse_varied_options(app, a.axes);
  if (has("density")) a.density = first("density");
  if (has("inputs")) a.input_size = std::int64_t(first("inputs"));
  if (has("outputs")) a.output_size = std::int64_t(first("outputs"));
  refuse_tile_options(app, a, {"--tiles-per-ipu", "--plan-constraints", "--plan-cache"});
  for (const study::SweepAxis& axis : a.axes)
    if (is_host(a) && study::is_of_machine(axis.figure))
      throw CLI::ValidationError(
          "--over", axis.figure + " belongs to modelled machines, and this computer is measured");
  if (a.input_size > 0 && a.output_size > 0 && has("density")) return;
  require_weights(app, a);
}

}  // namespace

void add_sweep_command(CLI::App& app, std::function<int()>& run) {
  CLI::App* command =
      app.add_subcommand("sweep",
                         "Compares a layer with the dense one for all values of some figures of "
                         "the layer or the machine.");
  command->footer(
      std::string(kExitCodes) +
      "\nExamples: tessera sweep --over tiles --values 368,736,1472 --input-size 1024 \\\n"
      "            --output-size 1024 --density 0.1 --batch-size 64 --html sweep.html\n"
      "          tessera sweep --over density=0.01:0.5,block=1,4,8,16 --input-size 1024 \\\n"
      "            --output-size 1024 --batch-size 64 --machine host\n"
      "          tessera sweep --devices 1,4,16,64,256,1024 --machine bow --input-size 8192 \\\n"
      "            --output-size 8192 --density 0.0625 --block-size 16 --batch-size 4096");
  const auto a = std::make_shared<SweepArguments>();
  command
      ->add_option("--over", a->over,
                   "figures to vary with their values, for example "
                   "density=0.01:0.5,block=1,4,8,16; a range FROM:TO:POINTS is even on a "
                   "logarithmic scale. Figures: " +
                       study::figure_names())
      ->type_name("FIGURE=VALUES");
  require_whole(
      command->add_option("--devices", a->devices,
                          "numbers of machines, separated by commas: plan the layer for pods of "
                          "them, once with this batch and once with as many times this batch"),
      1, kMostDevices)
      ->delimiter(',')
      ->excludes("--over");
  command->add_option("--values", a->values, "values of a single figure, separated by commas")
      ->delimiter(',');
  auto* csv = command->add_flag("--csv", a->csv, "print the table as CSV");
  add_study_options(*command, a->output);
  csv->excludes("--json");
  add_weights_options(*command, *a);
  add_layer_options(*command, *a);
  add_machine_options(*command, *a);
  add_planner_options(*command, *a);
  command->remove_option(command->get_option("--plan"));
  command->remove_option(command->get_option("--on-no-fit"));
  command->callback([command, a, &run] {
    check_together(*command, *a);
    run = [a] { return sweep(*a); };
  });
}

}  // namespace tessera::tools
