#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <vector>

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
  StudyOutput output;
  std::vector<study::SweepAxis> axes;
  std::vector<std::int64_t> devices;  // of pods to plan the layer for; empty: no pods
};

int sweep_pods(const SweepArguments& a) {
  Progress progress(false);
  planner::PlanCache cache(a.plan_cache);
  const study::Report report = study::sweep_devices(
      {problem_of(a), a.machine, make_machine(a), make_options(a, {}), a.devices}, cache,
      [&](std::int64_t devices, std::int64_t done) {
        progress.set(fmt::format("{} devices", devices), done, 2 * std::ssize(a.devices));
        return !is_interrupted();
      });
  progress.hide();
  return write_study(a.output, report, study::sweep_text(report, is_host(a)));
}

int sweep(const SweepArguments& given) {
  SweepArguments a = given;
  static_cast<LayerArguments&>(a) = with_layer_keys(given);
  // A mistake in the options is one of all points, and not the reason why a point has no plan.
  planner::check_options(make_options(a, {}));
  catch_interrupts();
  if (!a.devices.empty()) return sweep_pods(a);
  const auto sweep = std::make_shared<study::Sweep>(problem_of(a), a.axes, target_of(a));
  Progress progress(false);
  set_results_so_far([sweep, a] {
    const study::Report so_far = sweep->report();
    return in_form(a.output, so_far, study::sweep_text(so_far, is_host(a)));
  });
  for (std::int64_t at = 0; at < sweep->points() && !is_interrupted(); ++at) {
    progress.set(fmt::format("point {} of {}", at + 1, sweep->points()), at, sweep->points());
    sweep->add(change_results);
  }
  progress.hide();
  const study::Report report = sweep->report();
  const int exit = write_study(a.output, report, study::sweep_text(report, is_host(a)));
  return exit == kOk && !sweep->has_cost() ? int(kNothingFits) : exit;
}

// Refuses an option that gives one value of a figure that varies.
void refuse_varied_options(const CLI::App& app, const SweepArguments& a) {
  constexpr std::pair<const char*, const char*> kOptions[] = {
      {"density", "--density"},     {"density", "--sparsity"},   {"density", "--sparsity-factor"},
      {"batch", "--batch-size"},    {"block", "--block-size"},   {"inputs", "--input-size"},
      {"outputs", "--output-size"}, {"tiles", "--tiles-per-ipu"}};
  for (const auto& [figure, option] : kOptions)
    if (app.count(option) > 0 && study::axis_of(a.axes, figure) != nullptr)
      throw CLI::ValidationError(option,
                                 fmt::format("--over gives the values of {}; omit this", figure));
}

void check_together(const CLI::App& app, SweepArguments& a) {
  if (!a.matrix.empty())
    throw CLI::ValidationError(
        "--matrix",
        "sweep plans random patterns only; give --input-size, --output-size and --density");
  if (!a.devices.empty()) {  // a sweep over devices varies nothing else
    if (is_host(a))
      throw CLI::ValidationError("--devices", "takes a modelled machine, and --machine is host");
    study::check_devices(make_machine(a), a.devices);
    return require_weights(app, a);
  }
  if (a.over.empty())
    throw CLI::ValidationError("--over", "is required, or --devices for a sweep over pods");
  a.axes = study::parse_axes(a.over, a.values);
  refuse_varied_options(app, a);
  const study::SweepAxis* const density = study::axis_of(a.axes, "density");
  if (density != nullptr) a.density = density->values.front();
  if (const auto* axis = study::axis_of(a.axes, "inputs"))
    a.input_size = std::int64_t(axis->values.front());
  if (const auto* axis = study::axis_of(a.axes, "outputs"))
    a.output_size = std::int64_t(axis->values.front());
  take_host_defaults(app, a);
  refuse_tile_options(app, a, {"--tiles-per-ipu", "--plan-constraints", "--plan-cache"});
  if (a.input_size <= 0 || a.output_size <= 0 || density == nullptr) require_weights(app, a);
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
  add_study_options(*command, a->output);
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
