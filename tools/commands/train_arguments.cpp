#include "tessera/tools/commands/train_arguments.hpp"

#include <CLI/CLI.hpp>
#include <map>

#include "tessera/tools/internal/choices.hpp"
#include "tessera/tools/options/layer_options.hpp"
#include "tessera/tools/options/numbers.hpp"
#include "tessera/tools/options/paths.hpp"
#include "tessera/tools/run/ranks.hpp"

namespace tessera::tools {
namespace {

void add_network_shape_options(CLI::App& app, TrainArguments& a) {
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
                 "of --method top-k: exact, shortlist (nearly the gradient, then exact) or "
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
  add_rank_options(app, a.timeout_seconds);
}

void add_machine_options_of_training(CLI::App& app, TrainArguments& a) {
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

void add_training_files(CLI::App& app, TrainArguments& a) {
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

}  // namespace

void add_train_options(CLI::App& app, TrainArguments& a) {
  add_network_shape_options(app, a);
  add_training_options(app, a);
  add_machine_options_of_training(app, a);
  add_training_files(app, a);
}

}  // namespace tessera::tools
