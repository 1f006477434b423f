#include "tessera/tools/commands/train_run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <stop_token>

#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/base/write_file.hpp"
#include "tessera/json/value.hpp"
#include "tessera/report/document.hpp"
#include "tessera/tools/commands/train_options.hpp"
#include "tessera/tools/options/exit_code.hpp"
#include "tessera/tools/options/interrupt.hpp"
#include "tessera/tools/options/progress.hpp"
#include "tessera/tools/run/ranks.hpp"
#include "tessera/train/checkpoint.hpp"
#include "tessera/train/trainer.hpp"

namespace tessera::tools {
namespace {

using Json = json::Value;

double density_of(const sparse::Csr<float>& m) {
  return double(m.blocks()) / double(m.block_rows() * m.block_cols());
}

std::vector<std::string> notes_of(const train::Network<>& network) {
  std::vector<std::string> notes;
  bool pads = false;
  for (std::int64_t i = 0; i < network.layers(); ++i) {
    const Problem& p = network.problems()[std::size_t(i)];
    const Dims whole = p.size_in_blocks();
    pads = pads || whole.x != p.size.x || whole.y != p.size.y;
    notes.push_back(fmt::format("layer {}: {} x {}, blocks of {} x {}, {} weights, density {:.4f}",
                                i + 1, p.size.x, p.size.y, p.block.rows, p.block.cols,
                                network.weights(i).values.size(), density_of(network.weights(i))));
  }
  if (pads) notes.push_back("sides that are no multiple of the block are padded with zeros");
  return notes;
}

// Calls epoch(stop, after_step) for each epoch that is left and after_epoch() after each. Returns
// false if Ctrl-C ended the run.
template <class Epoch, class AfterEpoch>
bool run_epochs(const TrainArguments& a, std::int64_t done, std::int64_t steps_per_epoch,
                Progress& progress, Epoch&& epoch, AfterEpoch&& after_epoch) {
  std::stop_source stop;
  const auto after_step = [&](std::int64_t step) {
    if (is_interrupted()) stop.request_stop();
    progress.set(fmt::format("{}, step", a.method), step, a.epochs * steps_per_epoch);
  };
  for (; done < a.epochs; ++done) {
    if (is_interrupted()) stop.request_stop();
    if (!epoch(stop.get_token(), after_step)) return false;
    progress.hide();
    after_epoch();
  }
  return true;
}

// One training run, with its lines, checkpoints and Ctrl-C.
class TrainingRun {
 public:
  TrainingRun(const TrainArguments& a, const train::DataSet& data, train::MakeLayer make_layer,
              Executor& executor, train::BatchShare* share)
      : a_(a),
        network_(network_of(a), weights_before(a), std::move(make_layer), executor, share),
        trainer_(network_, data, options_of(a, data)) {
    const std::string checkpoint = a.resume.empty() ? std::string() : read_file(a.resume);
    if (share != nullptr) share->require_same("checkpoint", checkpoint);
    if (!a.resume.empty()) train::restore(trainer_, checkpoint, a.resume);
  }

  const train::TrainReport& report() const { return trainer_.report(); }
  const train::Trainer& trainer() const { return trainer_; }
  const train::Network<>& network() const { return network_; }

  // Returns false if Ctrl-C ended the run.
  bool run(bool prints, Progress& progress) {
    const auto epoch = [&](std::stop_token stop, const auto& after_step) {
      const bool finished = trainer_.epoch(std::move(stop), after_step);
      save();
      return finished;
    };
    try {
      return run_epochs(a_, std::ssize(report().epochs), trainer_.steps_per_epoch(), progress,
                        epoch, [&] {
                          if (prints) print_text(train::epoch_text(report(), density()));
                        });
    } catch (const Error&) {  // the run is as it was before the step that failed
      save();
      throw;
    }
  }

 private:
  std::optional<double> density() const {
    if (a_.density_schedule.empty() || a_.method == "dense") return std::nullopt;
    return network_.density();
  }
  void save() {
    if (!a_.checkpoint.empty() && is_first_rank())
      write_results(a_.checkpoint, train::checkpoint_of(trainer_));
  }

  TrainArguments a_;
  train::Network<> network_;
  train::Trainer trainer_;
};

train::DataSet read_data(const TrainArguments& a) {
  train::DataSet data =
      a.data.empty() ? train::read_fashion_mnist() : train::read_fashion_mnist(a.data);
  if (a.images > 0)
    for (train::LabelledImages* part : {&data.training, &data.test}) part->keep_first(a.images);
  return data;
}

// The parts that all runs of one command share.
struct Session {
  const train::DataSet& data;
  Executor& executor;
  bool prints = false;
  Progress progress{false};
  TrainOutcome outcome = {};
};

// Describes the first network of a session.
void describe(const train::Network<>& network, Session& session) {
  if (!session.outcome.notes.empty()) return;
  session.outcome.notes = notes_of(network);
  if (session.prints) print_text(fmt::format("{}\n", fmt::join(session.outcome.notes, "\n")));
}

// Trains a network to the end or to Ctrl-C, and calls finished(trainer).
template <class Finished>
train::TrainReport train_network(const TrainArguments& a, train::MakeLayer make_layer,
                                 Session& session, Finished&& finished,
                                 train::BatchShare* share = nullptr) {
  TrainingRun run(a, session.data, std::move(make_layer), session.executor, share);
  describe(run.network(), session);
  session.outcome.is_complete = run.run(session.prints, session.progress);
  session.outcome.dead_neurons = run.network().dead_neurons();
  finished(run.trainer());
  return run.report();
}

train::TrainReport train_on_machine(const TrainArguments& a, Session& session) {
  if (ranks() != nullptr) {
    const auto share = ranks()->batch_share(a.batch);
    return train_network(
        a, train::shared_layers(*share, session.executor), session, [](const auto&) {},
        share.get());
  }
  if (a.machine == device::kHostMachine)
    return train_network(a, train::host_layers(session.executor, network_of(a).density_changes),
                         session, [](const auto&) {});
  const train::ModelledMachine machine(a.machine);
  return train_network(a, machine.layers(session.executor), session, [&](const auto& trainer) {
    session.outcome.machine = train::machine_step(trainer, machine);
  });
}

void train_resident(const TrainArguments& a, Session& session) {
  train::ResidentTraining training(network_of(a), weights_before(a), session.data,
                                   options_of(a, session.data), device::load_machine(a.machine),
                                   session.executor);
  const train::ResidentReport& report = training.report();
  describe(training.network(), session);
  session.outcome.dead_neurons = training.network().dead_neurons();
  session.outcome.is_complete = run_epochs(
      a, 0, report.steps_per_epoch, session.progress,
      [&](std::stop_token stop, const auto& after_step) {
        return training.epoch(std::move(stop), after_step);
      },
      [&] {
        if (session.prints) print_text(to_text(report.epochs.back()));
      });
  session.outcome.resident = report;
  if (session.prints) print_text(to_text(report));
}

void warn_of_dead_neurons(const TrainArguments& a, const TrainOutcome& outcome) {
  if (outcome.dead_neurons == 0 || !is_first_rank()) return;
  std::int64_t hidden = 0;
  for (std::size_t i = 1; i + 1 < a.layers.size(); ++i) hidden += a.layers[i];
  print_message(fmt::format(
      "tessera: {} of {} hidden neurons are dead: they have no weight to read or to be read by; "
      "--min-per-neuron 1 keeps one of each\n",
      outcome.dead_neurons, hidden));
}

}  // namespace

TrainOutcome run_training(const TrainArguments& a) {
  if (ranks() != nullptr && a.machine != device::kHostMachine)
    throw_invalid(
        "--machine: training on modelled machines runs in one process; start the program "
        "without mpirun");
  if (ranks() != nullptr && a.beside_dense)
    throw_invalid(
        "--beside-dense: the layers of several ranks have no dense passes to compare with; "
        "start the program without mpirun");
  const train::DataSet data = read_data(a);
  const auto executor = make_executor(ranks() == nullptr ? a.threads : ranks()->threads(a.threads));
  if (a.batch > data.training.count())  // before a network for such a batch is allocated
    throw_invalid(fmt::format("{} is {}; there are {} training images",
                              a.network ? "the batch" : "--batch-size", a.batch,
                              data.training.count()));
  const EndsByItself watching;  // between two steps
  Session session{.data = data,
                  .executor = *executor,
                  .prints = !a.json && !a.csv,
                  .progress = Progress(!is_first_rank())};
  TrainOutcome& outcome = session.outcome;
  if (a.resident)
    train_resident(a, session);
  else
    outcome.sparse = train_on_machine(a, session);
  warn_of_dead_neurons(a, outcome);
  if (a.resident) return outcome;
  if (session.prints && outcome.machine) print_text(to_text(*outcome.machine));
  if (!a.beside_dense || !outcome.is_complete) return outcome;
  TrainArguments dense = a;
  dense.method = "dense";
  dense.block = 1;
  dense.checkpoint.clear();
  dense.resume.clear();
  if (session.prints) print_text("the same network with all weights\n");
  const std::optional<train::MachineStep> sparse_step = outcome.machine;
  const std::int64_t dead = outcome.dead_neurons;
  outcome.dense = train_on_machine(dense, session);
  outcome.dead_neurons = dead;
  outcome.machine = sparse_step;
  return outcome;
}

std::string training_csv(const TrainOutcome& outcome) {
  return train::csv_heading() + train::to_csv(outcome.sparse, "sparse") +
         (outcome.dense ? train::to_csv(*outcome.dense, "dense") : std::string());
}

std::string training_json(const TrainArguments& a, const TrainOutcome& outcome) {
  Json json = json::parse_own(report::document_head("train", outcome.is_complete));
  // A file says it for each layer.
  const auto of_options = [&](const auto& value) { return a.network ? Json() : Json(value); };
  const auto if_read = [](bool is_read, const auto& value) {
    return is_read ? Json(value) : Json();
  };
  json.update(Json{{"layers", a.layers},
                   {"method", a.method},
                   {"density", a.method == "dense" ? Json(1.0) : of_options(a.density)},
                   {"distribution", of_options(a.distribution)},
                   {"block", of_options(a.block)},
                   {"batch", a.batch},
                   {"seed", a.seed},
                   {"machine", a.machine},
                   {"data_type", tessera::to_string(a.data_type)},
                   {"optimiser", a.optimiser},
                   {"learning_rate", a.learning_rate},
                   {"epochs", a.epochs},
                   {"min_per_neuron", a.min_per_neuron},
                   {"constant_fan_in", a.constant_fan_in},
                   {"every", if_read(a.rewires(), a.every)},
                   {"fraction", if_read(a.moves_a_share(), a.fraction)},
                   {"factor", if_read(a.samples(), a.factor)},
                   {"search", if_read(a.method == "top-k", a.search)},
                   {"dead_neurons", outcome.dead_neurons},
                   {"notes", outcome.notes},
                   {"network", json::parse_own(planner::to_json(spec_in(a)))}});
  if (outcome.resident)
    json["resident"] = json::parse_own(to_json(*outcome.resident));
  else
    json["sparse"] = json::parse_own(to_json(outcome.sparse));
  if (!a.density_schedule.empty())
    json["density_schedule"] = {{"curve", a.density_schedule}, {"first", a.first_density}};
  if (outcome.dense) json["dense"] = json::parse_own(to_json(*outcome.dense));
  if (outcome.machine) json["step_on_machine"] = json::parse_own(to_json(*outcome.machine));
  return json.dump(2) + "\n";
}

}  // namespace tessera::tools
