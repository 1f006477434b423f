#include "tessera/train/resident.hpp"

#include <fmt/format.h>

#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/printable.hpp"
#include "tessera/json/value.hpp"
#include "tessera/planner/plan_network.hpp"
#include "tessera/runtime/network.hpp"
#include "tessera/train/data/batches.hpp"

namespace tessera::train {
namespace {

using Json = json::Value;

// Passes that multiply all weights need no buckets.
planner::NetworkSpec resident_spec(const NetworkOptions& options, const Optimiser& optimiser) {
  planner::NetworkSpec spec = spec_of(options);
  for (planner::NetworkLayer& layer : spec.layers)
    if (layer.density == 1 && layer.block == BlockShape{}) layer.dense = true;
  spec.optimiser = optimiser;
  return spec;
}

// Evaluations compute in float on this computer, whatever the tiles keep.
NetworkOptions options_here(const NetworkOptions& options) {
  NetworkOptions here = options;
  here.data_type = DataType::Float;
  if (!here.spec) return here;
  here.spec->data_type = DataType::Float;
  for (planner::NetworkLayer& layer : here.spec->layers) {
    layer.recompute = false;
    layer.operands = Placement::AsLeft;
  }
  return here;
}

const TrainOptions& with_fixed_pattern(const TrainOptions& options) {
  if (std::holds_alternative<Static>(options.method)) return options;
  throw_invalid(
      fmt::format("resident training: method {} changes patterns, and the program of a "
                  "resident network is built for one; choose static, or train layer by "
                  "layer",
                  name_of(options.method)));
}

}  // namespace

struct ResidentTraining::State {
  State(const NetworkOptions& network, std::span<const sparse::Csr<float>> weights,
        const DataSet& data, const TrainOptions& train_options, const device::Machine& machine,
        Executor& executor)
      : options(with_fixed_pattern(train_options)),
        spec(resident_spec(network, options.optimiser)),
        here(options_here(network), weights, host_layers(executor), executor),
        evaluation(here, data, options),
        batches(data.training, spec.batch, options.seed, options.normalisation),
        plan(planner::plan_network(spec, machine)),
        resident(spec, plan.plans, machine, device::ExchangeMode::Share, executor),
        images(spec.layers.front().inputs, spec.batch),
        labels(std::size_t(spec.batch)) {
    for (std::size_t l = 0; l < weights.size(); ++l)
      if (const auto misfit = resident.set_weights(std::int64_t(l), weights[l]))
        throw Error(ErrorCode::NoSolution,
                    fmt::format("resident training: the weights of layer {} do not fit their "
                                "buckets: {}",
                                l + 1, misfit->message));
    report = {.machine = machine,
              .steps_per_epoch = batches.count(),
              .epochs = {},
              .step = {},
              .layer_by_layer = plan.layer_by_layer,
              .layer_by_layer_fits = plan.layer_by_layer_fits,
              .memory = resident.high_water()};
  }

  void step();
  Loss evaluate();

  TrainOptions options;
  planner::NetworkSpec spec;
  Network<> here;  // for evaluations, with the parameters of the tiles
  Trainer evaluation;
  Batches batches;
  planner::NetworkPlan plan;
  runtime::Network resident;
  Matrix<float> images;
  std::vector<std::int32_t> labels;
  ResidentReport report;
  double loss_sum = 0;  // of the epoch so far
  Cycles cycles;        // of the epoch so far
};

void ResidentTraining::State::step() {
  const std::int64_t done = report.steps;
  batches.load(done / batches.count(), done % batches.count(), images.view(), labels);
  resident.set_learning_rate(options.rate.at(done + 1));
  report.step = resident.run({.inputs = images.view(), .labels = labels}).ledger.total();
  if (done % batches.count() == 0) {
    loss_sum = 0;
    cycles = {};
  }
  loss_sum += double(resident.loss());
  cycles += report.step;
  ++report.steps;
}

Loss ResidentTraining::State::evaluate() {
  for (std::int64_t l = 0; l < here.layers(); ++l) {
    here.state(l).layer().set_values(resident.weights(l).values);
    const std::span<const float> bias = resident.bias(l);
    here.state(l).bias.assign(bias.begin(), bias.end());
  }
  const Loss loss = evaluation.evaluate();
  here.check_loss("resident training: the test loss", report.steps, loss.sum);
  return loss;
}

ResidentTraining::ResidentTraining(const NetworkOptions& network,
                                   std::span<const sparse::Csr<float>> weights, const DataSet& data,
                                   const TrainOptions& options, const device::Machine& machine,
                                   Executor& executor)
    : state_(std::make_unique<State>(network, weights, data, options, machine, executor)) {}
ResidentTraining::~ResidentTraining() = default;

const ResidentReport& ResidentTraining::report() const { return state_->report; }
const Network<>& ResidentTraining::network() const { return state_->here; }

bool ResidentTraining::epoch(std::stop_token stop,
                             const std::function<void(std::int64_t)>& progress) {
  ResidentReport& report = state_->report;
  do {
    if (stop.stop_requested()) return false;
    state_->step();
    if (progress) progress(report.steps);
  } while (report.steps % report.steps_per_epoch != 0);
  const Loss test = state_->evaluate();
  const auto images = double(state_->evaluation.test_images());
  report.epochs.push_back({.epoch = report.steps / report.steps_per_epoch,
                           .loss = state_->loss_sum / double(report.steps_per_epoch),
                           .test_loss = test.sum / images,
                           .test_accuracy = double(test.right) / images,
                           .cycles = state_->cycles});
  return true;
}

std::string to_text(const ResidentEpoch& e) {
  return fmt::format("epoch {:>3}  loss {:.4f}  test {:6.2f} %  {} cycles\n", e.epoch, e.loss,
                     100 * e.test_accuracy, e.cycles.value);
}

std::string to_text(const ResidentReport& r) {
  if (r.step == Cycles())
    return fmt::format("\nresident on {} (modelled): no step ran\n", printable(r.machine.name));
  const auto epoch = [&](Cycles step) { return step.value * r.steps_per_epoch; };
  const std::string apart =
      r.layer_by_layer_fits
          ? fmt::format("{} cycles a step, {} an epoch (planned), {:.2f} times as many",
                        r.layer_by_layer.value, epoch(r.layer_by_layer),
                        double(r.layer_by_layer.value) / double(r.step.value))
          : std::string("do not fit the memory of a tile");
  return fmt::format(
      "\nresident on {} (modelled), {} bytes on the fullest tile\n"
      "one program    {} cycles a step, {} an epoch, {:.3f} ms at {:.3f} GHz\n"
      "layer by layer {}\n",
      printable(r.machine.name), r.memory.value, r.step.value, epoch(r.step),
      1e3 * double(epoch(r.step)) / r.machine.clock_hz, r.machine.clock_hz * 1e-9, apart);
}

std::string to_json(const ResidentReport& r) {
  Json epochs = json::List();
  for (const ResidentEpoch& e : r.epochs)
    epochs.push_back({{"epoch", e.epoch},
                      {"loss", e.loss},
                      {"test_loss", e.test_loss},
                      {"test_accuracy", e.test_accuracy},
                      {"cycles", e.cycles.value}});
  return Json({{"machine", r.machine.name},
               {"steps", r.steps},
               {"steps_per_epoch", r.steps_per_epoch},
               {"step_cycles", r.step == Cycles() ? Json() : Json(r.step.value)},
               {"layer_by_layer_cycles",
                r.layer_by_layer_fits ? Json(r.layer_by_layer.value) : Json()},
               {"tile_bytes", r.memory.value},
               {"epochs", std::move(epochs)}})
      .dump();
}

}  // namespace tessera::train
