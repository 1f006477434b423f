#include <CLI/CLI.hpp>
#include <initializer_list>
#include <memory>
#include <string>

#include "tessera/tools/commands/commands.hpp"
#include "tessera/tools/commands/train_arguments.hpp"
#include "tessera/tools/commands/train_options.hpp"
#include "tessera/tools/commands/train_run.hpp"
#include "tessera/tools/options/command_line.hpp"
#include "tessera/tools/options/exit_code.hpp"
#include "tessera/tools/options/interrupt.hpp"
#include "tessera/tools/options/layer_options.hpp"
#include "tessera/tools/page/report_page.hpp"
#include "tessera/tools/run/ranks.hpp"
#include "tessera/train/rewire/method.hpp"

namespace tessera::tools {
namespace {

int train_and_report(const TrainArguments& given) {
  catch_interrupts();
  const TrainArguments a = with_network_file(given);
  const TrainOutcome outcome = run_training(a);
  const EndsByItself reporting;
  if (a.csv) print_results(training_csv(outcome));
  if (a.json) print_results(training_json(a, outcome));
  if (!a.html.empty() && is_first_rank())
    write_results(a.html, study_page(training_json(a, outcome)));
  if (outcome.is_complete) return kOk;
  if (!is_first_rank()) return interrupted_exit_code();
  print_message(a.checkpoint.empty()
                    ? "tessera: interrupted; without --checkpoint the run cannot go on\n"
                    : "tessera: interrupted; --resume with the same options goes on\n");
  return interrupted_exit_code();
}

// Refuses options that a file of a network or a resident program has no use for.
void refuse_beside(const CLI::App& command, const TrainArguments& a) {
  const auto refuse_all = [&](std::initializer_list<const char*> options, const char* why) {
    for (const char* option : options)
      if (command.count(option) > 0) throw CLI::ValidationError(option, why);
  };
  if (!a.file.empty())
    refuse_all({"--layers", "--density", "--distribution", "--density-schedule", "--first-density",
                "--block", "--batch-size", "--optimiser", "--data-type"},
               "is of no use: the file describes the network, its batch and its optimiser");
  if (!a.resident) return;
  if (a.machine == device::kHostMachine)
    throw CLI::ValidationError("--resident", "is of use with a modelled --machine only");
  if (a.method != "static" && a.method != "dense")
    throw CLI::ValidationError("--resident", "is a program for one pattern, which --method " +
                                                 a.method +
                                                 " changes; choose --method static or dense");
  refuse_all({"--checkpoint", "--resume", "--beside-dense", "--csv", "--html"},
             "cannot be with --resident, which prints lines or --json");
}

// Refuses options that change nothing about this method.
void refuse_idle_options(const CLI::App& command, const TrainArguments& a) {
  const auto refuse = [&](const char* option, bool is_idle, const char* why) {
    if (is_idle && command.count(option) > 0) throw CLI::ValidationError(option, why);
  };
  const bool is_dense = a.method == "dense";
  refuse("--search", a.method != "top-k", "is of use with --method top-k only");
  refuse("--factor", !a.samples(),
         "is of use with --method sampled only, or with --search shortlist and sampled");
  for (const char* option :
       {"--density", "--distribution", "--block", "--min-per-neuron", "--constant-fan-in"})
    refuse(option, is_dense, "is of no use: --method dense stores all weights");
  refuse("--every", !a.rewires(), "is of use with a --method whose pattern changes only");
  refuse("--fraction", !a.moves_a_share(), "is of use with --method set, rigl or sampled only");
  refuse("--density-schedule", !a.rewires(),
         "is of use with a --method whose pattern changes only");
  refuse("--first-density", a.density_schedule.empty(), "is of use with --density-schedule only");
  refuse("--constant-fan-in", a.method == "sampled" || a.method == "top-k",
         "is of use with --method static, set, rigl or prune only");
  refuse("--constant-fan-in", a.min_per_neuron > 0, "cannot be with --min-per-neuron");
  if (a.method == "prune" && a.density_schedule.empty())
    throw CLI::ValidationError("--method", "prune needs --density-schedule");
  if (a.method == "top-k" && a.block != 1)
    throw CLI::ValidationError("--block", "must be 1 with --method top-k, which compares weights");
}

}  // namespace

void add_train_command(CLI::App& app, std::function<int()>& run) {
  CLI::App* command = app.add_subcommand(
      "train",
      "Trains a sparse network on images, on this computer or a modelled machine, with a pattern "
      "that changes, and prints a line for each epoch.");
  command->footer(
      std::string(kExitCodes) +
      "\nExample: tessera train --layers 784,1024,10 --method rigl --density 0.1 --epochs 3 \\\n"
      "           --checkpoint run.safetensors --html run.html");
  const auto a = std::make_shared<TrainArguments>();
  add_train_options(*command, *a);
  command->callback([command, a, &run] {
    refuse_empty_values(*command);
    refuse_beside(*command, *a);
    refuse_idle_options(*command, *a);
    a->gives_rate = command->count("--learning-rate") > 0;
    if (a->method == "top-k" && command->count("--factor") == 0) a->factor = train::TopK{}.factor;
    if (a->optimiser == "adam" && !a->gives_rate) a->learning_rate = 0.001;
    if (a->data_type != DataType::Float && a->machine == device::kHostMachine)
      throw CLI::ValidationError("--data-type", "is of use with a modelled --machine only");
    if (a->method == "dense" && a->beside_dense)
      throw CLI::ValidationError("--beside-dense", "--method dense is that run already");
    if (!a->html.empty() && !can_make_pages())
      throw CLI::ValidationError("--html", "this program was built without the chart library");
    check_rank_options(*command);
    run = [a] {
      return with_ranks("tessera train", a->timeout_seconds, [&] { return train_and_report(*a); });
    };
  });
}

}  // namespace tessera::tools
