#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "tessera/planner/options.hpp"
#include "tessera/study/advice.hpp"
#include "tessera/tools/commands/commands.hpp"
#include "tessera/tools/options/exit_code.hpp"
#include "tessera/tools/options/host_options.hpp"
#include "tessera/tools/options/interrupt.hpp"
#include "tessera/tools/options/layer_options.hpp"
#include "tessera/tools/options/models.hpp"
#include "tessera/tools/options/progress.hpp"
#include "tessera/tools/options/study_output.hpp"

namespace tessera::tools {
namespace {

struct AdviseArguments : LayerArguments {
  std::string file, tensor;
  std::vector<std::string> machines = {"gc200"};
  StudyOutput output;
};

// Throws for a wrong machine or option, before the file is read.
study::Target advised_on(LayerArguments a, const std::string& name) {
  a.machine = name;
  study::Target target = target_of(a);
  if (!target.is_host()) planner::check_options(target.options);
  return target;
}

int advise_on(const AdviseArguments& given) {
  catch_interrupts();
  const LayerArguments a = with_layer_keys(given);
  std::vector<study::Target> targets;
  for (const std::string& name : given.machines) targets.push_back(advised_on(a, name));
  Progress progress(false);
  progress.set("reading " + given.file);
  const study::Advice advice = study::advise(
      given.file, given.tensor, problem_of(a), targets,
      [&](const std::string& layer, const std::string& machine) {
        progress.set(fmt::format("planning {} for {}", layer, machine));
        return !is_interrupted();
      },
      [&](const study::Advice& so_far) {
        set_results_so_far(
            in_form(given.output, to_report(so_far), to_text(so_far), to_json(so_far)));
      });
  progress.hide();
  const int exit = write_study(given.output, to_report(advice), to_text(advice), to_json(advice));
  return exit == kOk && !advice.has_plan() ? int(kNothingFits) : exit;
}

}  // namespace

void add_advise_command(CLI::App& app, std::function<int()>& run) {
  CLI::App* command = app.add_subcommand(
      "advise", "Advises on the block size, and on sparse or dense, for every layer of a file.");
  command->footer(std::string(kExitCodes) +
                  "\nExample: tessera advise model.safetensors --batch-size 256 --machine bow "
                  "--machine host");
  const auto a = std::make_shared<AdviseArguments>();
  command
      ->add_option("file", a->file,
                   "file of weights, in any format that --matrix reads; all matrices of a "
                   ".safetensors file")
      ->required();
  command
      ->add_option("--tensor", a->tensor,
                   "the only matrix of a .safetensors file to look at; a single matrix is shown in "
                   "all forms, with the spread of its non-zeros")
      ->type_name("NAME");
  add_layer_options(*command, *a);
  add_machine_options(*command, *a);
  add_planner_options(*command, *a);
  for (const char* name : {"--block-size", "--machine", "--plan"})
    command->remove_option(command->get_option(name));
  auto* machines = command->add_option(
      "--machine", a->machines,
      "machine to plan for: gc200, bow, mk1 or FILE.json; host means this computer; may be given "
      "several times");
  offer_machines(machines)->allow_extra_args(false)->capture_default_str();
  add_study_options(*command, a->output);
  command->callback([command, a, &run] {
    // Options of the planner are of use as long as one machine has tiles.
    const auto modelled = std::ranges::find_if(
        a->machines, [](const std::string& name) { return name != device::kHostMachine; });
    a->machine = modelled == a->machines.end() ? device::kHostMachine : *modelled;
    take_host_defaults(*command, *a);
    if (is_host(*a) && command->count("--single-phase") == 0) a->phase = PhaseChoice::Fwd;
    refuse_tile_options(*command, *a,
                        {"--tiles-per-ipu", "--plan-constraints", "--plan-cache", "--on-no-fit"});
    run = [a] { return advise_on(*a); };
  });
}

}  // namespace tessera::tools
