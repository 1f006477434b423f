#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <vector>

#include "tessera/train/data/batches.hpp"
#include "tessera/train/data/idx.hpp"
#include "tessera/train/loss/cross_entropy.hpp"
#include "tessera/train/network.hpp"
#include "tessera/train/optim/learning_rate.hpp"
#include "tessera/train/optim/values.hpp"
#include "tessera/train/report.hpp"
#include "tessera/train/rewire/carry.hpp"
#include "tessera/train/rewire/method.hpp"
#include "tessera/train/rewire/schedule.hpp"

namespace tessera::train {

// The options of a training run.
struct TrainOptions {
  Method method = RigL{};
  RewireSchedule schedule;  // its end must be set for a method that rewires
  // The density changes with the rewires: from that of the network on, whose option density_changes
  // is set. Empty: it stays. Method Prune needs one that falls.
  std::optional<DensitySchedule> density;
  // weight_decay is for weights only; biases do not decay. The learning rate is that of `rate`.
  Optimiser optimiser{.rule = TorchSgd{}, .weight_decay = 2e-4};
  LearningRate rate;
  Normalisation normalisation;
  std::uint64_t seed = 1;  // of the order of the images and of random growth
};

// Returns options for a run of so many steps: a rate that falls as a cosine from `rate` to 0, and
// rewires every 100 steps up to three quarters of the run.
TrainOptions usual_options(const Method& method, std::int64_t steps, double rate = 0.1);

// Returns densities that change over the first half of a run of so many steps.
DensitySchedule usual_densities(double first, double last, std::int64_t steps, DensityCurve curve);

// All that a run needs to go on, beside network and options. A checkpoint stores it.
struct TrainState : NetworkState {
  std::vector<EverActive> ever_active;  // by layer
  double loss_sum = 0;                  // of the epoch so far
  std::int64_t right = 0;               // of the epoch so far
  TrainReport report;
};

// Rewires that changed the pattern of a layer.
struct PatternChanges {
  std::int64_t rewires = 0;
  double seconds = 0;  // measured, of all of them
};

// Trains a network on labelled images, in one process or with others that call the same functions
// (batch_share.hpp). The results, but for the measured seconds, have the same
// bits for any number of threads and any executor, and do not depend on whether a run was
// interrupted at any step and went on from its state. One thread at a time uses it. The steps of a
// run in one process allocate nothing, but for those that rewire.
// Example: Trainer trainer(network, data, usual_options(RigL{}, 30 * 468));
//          while (trainer.report().epochs.size() < 30) trainer.epoch();
class Trainer {
 public:
  // Network and data must outlive the object. Throws Error{InvalidArgument} for options outside
  // their range, for images whose size is not the network's input, and for a network with fewer
  // outputs than the labels need.
  Trainer(Network<>& network, const DataSet& data, const TrainOptions& options);

  // Makes one step: a batch, the gradients, and the optimiser's step or a rewire. Throws
  // Error{InvalidArgument} if the loss is not finite; the message names the step and the layer with
  // the largest value. Throws the errors of rewire(). After an exception, network and state are as
  // they were before the step.
  void step();

  // Makes steps up to the end of the current epoch, evaluates the network and adds the figures of
  // the epoch to the report. Returns false if `stop` ended it between two steps; the next call then
  // goes on with the epoch. `progress` is called after each step with the number of steps so far.
  // Throws the errors of step(), and the same error if the loss on the test set is not finite.
  bool epoch(std::stop_token stop = {}, const std::function<void(std::int64_t)>& progress = {});

  // Returns the loss and the right answers on the test set. Weights and state do not change; the
  // operands of the network do.
  Loss evaluate();

  // Returns true if this step, counted from 1, changes patterns by the options.
  bool rewires_at(std::int64_t step) const;

  const TrainReport& report() const { return state_.report; }

  // Returns the rewires that added or removed a block since the trainer was made, or has gone on
  // from a state.
  const PatternChanges& pattern_changes() const { return pattern_changes_; }

  std::int64_t steps_per_epoch() const { return batches_.count(); }
  std::int64_t test_images() const { return data_->test.count(); }
  const TrainOptions& options() const { return options_; }
  Network<>& network() { return *network_; }
  const Network<>& network() const { return *network_; }

  // The state of the run, and going on from one. The network must have the weights and biases of
  // that state; see checkpoint.hpp, which stores both. Throws Error{InvalidArgument} for a state
  // that does not fit the network.
  const TrainState& state() const { return state_; }
  void set_state(TrainState state);

 private:
  // Calls load(inputs), which writes a batch, and keeps the columns of this process.
  template <class Load>
  void load_inputs(Load&& load);
  // Returns the loss of the first columns of a batch, and writes the gradient of the scores.
  Loss take_loss(std::int64_t columns);
  void step_weights();
  WorkTimer timer();
  Optimiser optimiser_now() const;
  std::vector<std::int64_t> blocks_wanted() const;
  std::int64_t inputs() const { return network_->spec().layers.front().inputs; }
  void rewire_all(double fraction);
  // Adds a rewire to the report, with the shares and the weights of inputs that there are now.
  // `per_input` must have a zero for each input. Allocates nothing if the report has the capacity.
  void add_rewire(RewireFigures figures);
  void rewire_after_step(double fraction);

  Network<>* network_;
  const DataSet* data_;
  TrainOptions options_;
  Batches batches_, test_;
  std::vector<std::int32_t> labels_;
  Matrix<float> all_inputs_, all_scores_, all_gradients_;  // of the whole batch, with a share
  TrainState state_;
  PatternChanges pattern_changes_;
};

}  // namespace tessera::train
