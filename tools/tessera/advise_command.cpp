#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "tessera/tools/exit_code.hpp"
#include "tessera/tools/internal/host_options.hpp"
#include "tessera/tools/internal/interrupt.hpp"
#include "tessera/tools/internal/layer_options.hpp"
#include "tessera/tools/internal/progress.hpp"
#include "tessera/tools/internal/study.hpp"
#include "tessera/tools/tessera/advice.hpp"
#include "tessera/tools/tessera/commands.hpp"

namespace tessera::tools {
namespace {

struct AdviseArguments : LayerArguments {
  std::string file;
  std::vector<std::string> machines = {"gc200"};
  internal::StudyOutput output;
};

int advise_on(const AdviseArguments& a) {
  internal::catch_interrupts();
  internal::Progress progress(false);
  const auto keep = [&](const Advice& so_far) {
    internal::set_results_so_far(a.output.json ? to_json(so_far) : to_text(so_far));
  };
  const Advice advice = advise(with_layer_keys(a), a.file, a.machines, progress, keep);
  const int exit =
      internal::write_study(a.output, to_study(advice), to_text(advice), to_json(advice));
  return exit == kOk && !advice.has_plan() ? int(kNothingFits) : exit;
}

}  // namespace

void add_advise_command(CLI::App& app, std::function<int()>& run) {
  CLI::App* command = app.add_subcommand(
      "advise", "Advises on the block size, and on sparse or dense, for every layer of a file.");
  command->footer(std::string(internal::kExitCodes) +
                  "\nExample: tessera advise model.safetensors --batch-size 256 --machine bow "
                  "--machine host");
  const auto a = std::make_shared<AdviseArguments>();
  command
      ->add_option("file", a->file,
                   "file of weights, in any format that --matrix reads; all matrices of a "
                   ".safetensors file")
      ->required();
  internal::add_layer_options(*command, *a);
  internal::add_machine_options(*command, *a);
  internal::add_planner_options(*command, *a);
  for (const char* name : {"--block-size", "--machine", "--plan"})
    command->remove_option(command->get_option(name));
  auto* machines = command->add_option(
      "--machine", a->machines,
      "machine to plan for: gc200, bow, mk1 or FILE.json; host means this computer; may be given "
      "several times");
  internal::offer_machines(machines)->allow_extra_args(false)->capture_default_str();
  internal::add_study_options(*command, a->output);
  command->callback([command, a, &run] {
    // Options of the planner are of use as long as one machine has tiles.
    const auto modelled = std::ranges::find_if(
        a->machines, [](const std::string& name) { return name != device::kHostMachine; });
    a->machine = modelled == a->machines.end() ? device::kHostMachine : *modelled;
    internal::refuse_tile_options(
        *command, *a, {"--tiles-per-ipu", "--plan-constraints", "--plan-cache", "--on-no-fit"});
    run = [a] { return advise_on(*a); };
  });
}

}  // namespace tessera::tools
