#include <CLI/CLI.hpp>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>

#include "tessera/tools/commands/commands.hpp"
#include "tessera/tools/commands/train_run.hpp"
#include "tessera/tools/internal/choices.hpp"
#include "tessera/tools/options/command_line.hpp"
#include "tessera/tools/options/exit_code.hpp"
#include "tessera/tools/options/interrupt.hpp"
#include "tessera/tools/options/layer_options.hpp"
#include "tessera/tools/options/numbers.hpp"
#include "tessera/tools/options/paths.hpp"
#include "tessera/tools/page/report_page.hpp"

namespace tessera::tools {
namespace {

int train_and_report(const TrainArguments& given) {
  catch_interrupts();
  const TrainArguments a = with_network_file(given);
  const TrainOutcome outcome = run_training(a);
  const EndsByItself reporting;
  if (a.csv) print_results(training_csv(outcome));
  if (a.json) print_results(training_json(a, outcome));
  if (!a.html.empty()) write_results(a.html, study_page(training_json(a, outcome)));
  if (!is_interrupted()) return kOk;
  print_message(a.checkpoint.empty()
                    ? "tessera: interrupted; without --checkpoint the run cannot go on\n"
                    : "tessera: interrupted; --resume with the same options goes on\n");
  return interrupted_exit_code();
}

void add_network_options(CLI::App& app, TrainArguments& a) {
  app.add_option("file", a.file,
                 "a network as `tessera network` takes it, in place of the options that describe "
                 "one; without: those");
  app.add_option("--layers", a.layers, "inputs and widths of the layers, separated by commas")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--method", a.method,
                 "how the pattern changes: static, set, rigl, sampled, prune, top-k; dense trains "
                 "all weights")
      ->check(CLI::IsMember({"static", "set", "rigl", "sampled", "prune", "top-k", "dense"})
                  .description(""))
      ->capture_default_str();
  require_number(
      app.add_option("--density", a.density, "share of weights that are stored, above 0"), 0, 1)
      ->capture_default_str();
  app.add_option("--distribution", a.distribution,
                 "of the weights over layers: uniform (the last layer is dense) or erk")
      ->check(CLI::IsMember({"uniform", "erk"}).description(""))
      ->capture_default_str();
  app.add_option("--density-schedule", a.density_schedule,
                 "the density goes from --first-density to --density in the first half of the run: "
                 "linear, cubic or exponential")
      ->check(CLI::IsMember({"linear", "cubic", "exponential"}).description(""));
  require_number(app.add_option("--first-density", a.first_density,
                                "density at which --density-schedule begins, above 0"),
                 0, 1)
      ->capture_default_str();
  require_whole(app.add_option("--min-per-neuron", a.min_per_neuron,
                               "blocks that each row and column of a layer has at least"),
                0, kLargestSize)
      ->capture_default_str();
  app.add_flag(
      "--constant-fan-in", a.constant_fan_in,
      "each row of a layer has as many blocks as the others; for set, rigl, prune, static");
  require_whole(app.add_option("--block", a.block, "side of the blocks of weights"), 1, 64)
      ->capture_default_str();
}

void add_training_options(CLI::App& app, TrainArguments& a) {
  const auto whole = [&](const char* name, std::int64_t& value, std::int64_t least,
                         const char* what) {
    require_whole(app.add_option(name, value, what), least, kLargestSize)->capture_default_str();
  };
  whole("--epochs", a.epochs, 1, "passes over the training images");
  whole("--batch-size", a.batch, 1, "images of a step");
  whole("--every", a.every, 1, "steps from one rewire to the next, up to 3/4 of the run");
  whole("--seed", a.seed, 0, "of patterns, first values, order of images and random growth");
  require_number(
      app.add_option("--learning-rate", a.learning_rate,
                     "first rate; it falls as a cosine to 0; 0.001 if adam has none given"),
      0)
      ->capture_default_str();
  require_number(
      app.add_option("--fraction", a.fraction, "share of the blocks that the first rewire moves"),
      0, 1)
      ->capture_default_str();
  app.add_option("--optimiser", a.optimiser,
                 "sgd with momentum 0.9 and weight decay 2e-4, or adam without decay")
      ->check(CLI::IsMember({"sgd", "adam"}).description(""))
      ->capture_default_str();
  app.add_option("--search", a.search,
                 "of --method top-k: exact, shortlist (a sample of the images, then exact) or "
                 "sampled (random places)")
      ->check(CLI::IsMember({"exact", "shortlist", "sampled"}).description(""))
      ->capture_default_str();
  require_number(
      app.add_option(
          "--factor", a.factor,
          "candidates of --method sampled (2), or of --search shortlist and sampled (4), "
          "for each stored block"),
      1e-6)
      ->capture_default_str();
  whole("--images", a.images, 0, "first images to use of each part of the data set; 0: all");
  require_whole(app.add_option("--threads", a.threads, "threads; 0: one for each core"), 0,
                kMostThreads);
}

void add_machine_option(CLI::App& app, TrainArguments& a) {
  offer_machines(
      app.add_option("--machine", a.machine,
                     "host: this computer; or the preset or file of a modelled machine, which also "
                     "reports the cycles of a step"))
      ->capture_default_str();
  app.add_flag("--resident", a.resident,
               "train as one program of a modelled machine, whose tiles keep all weights, and "
               "print the cycles of an epoch; for --method static and dense");
  static const std::map<std::string, DataType> types{{"float", DataType::Float},
                                                     {"half", DataType::Half}};
  take_one_of(app.add_option("--data-type", a.data_type,
                             "type of the operands of the passes on a modelled machine: "
                             "float, or half; the optimiser changes floats"),
              types)
      ->type_name("TYPE")
      ->default_str("float");
}

void add_file_options(CLI::App& app, TrainArguments& a) {
  app.add_option("--data", a.data,
                 "folder of the four IDX files of a data set; default: Debian's "
                 "dataset-fashion-mnist")
      ->type_name("DIR");
  require_writable_file(
      *app.add_option("--checkpoint", a.checkpoint, "file to save the run to after each epoch")
           ->type_name("FILE"));
  app.add_option("--resume", a.resume, "file of a run with the same options to go on from")
      ->type_name("FILE");
  app.add_flag("--beside-dense", a.beside_dense, "then train the same network with all weights");
  auto* csv = app.add_flag("--csv", a.csv, "print the figures of the epochs as CSV");
  app.add_flag("--json", a.json, "print all figures as JSON")->excludes(csv);
  require_writable_file(
      *app.add_option("--html", a.html, "write figures and charts as one HTML page")
           ->type_name("FILE"));
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
  const bool rewires = !is_dense && a.method != "static";
  const bool moves_a_share = rewires && a.method != "prune" && a.method != "top-k";
  const bool samples = a.method == "sampled" || (a.method == "top-k" && a.search != "exact");
  refuse("--search", a.method != "top-k", "is of use with --method top-k only");
  refuse("--factor", !samples,
         "is of use with --method sampled only, or with --search shortlist and sampled");
  for (const char* option :
       {"--density", "--distribution", "--block", "--min-per-neuron", "--constant-fan-in"})
    refuse(option, is_dense, "is of no use: --method dense stores all weights");
  refuse("--every", !rewires, "is of use with a --method whose pattern changes only");
  refuse("--fraction", !moves_a_share, "is of use with --method set, rigl or sampled only");
  refuse("--density-schedule", !rewires, "is of use with a --method whose pattern changes only");
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
  add_network_options(*command, *a);
  add_training_options(*command, *a);
  add_machine_option(*command, *a);
  add_file_options(*command, *a);
  command->callback([command, a, &run] {
    refuse_empty_values(*command);
    refuse_beside(*command, *a);
    refuse_idle_options(*command, *a);
    a->gives_rate = command->count("--learning-rate") > 0;
    if (a->method == "top-k" && command->count("--factor") == 0) a->factor = 4;
    if (a->optimiser == "adam" && !a->gives_rate) a->learning_rate = 0.001;
    if (a->data_type != DataType::Float && a->machine == device::kHostMachine)
      throw CLI::ValidationError("--data-type", "is of use with a modelled --machine only");
    if (a->method == "dense" && a->beside_dense)
      throw CLI::ValidationError("--beside-dense", "--method dense is that run already");
    if (!a->html.empty() && !can_make_pages())
      throw CLI::ValidationError("--html", "this program was built without the chart library");
    run = [a] { return train_and_report(*a); };
  });
}

}  // namespace tessera::tools
