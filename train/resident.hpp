#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/base/units.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/train/data/idx.hpp"
#include "tessera/train/network_options.hpp"
#include "tessera/train/trainer.hpp"

namespace tessera::train {

// Figures of one epoch of a resident run.
struct ResidentEpoch {
  std::int64_t epoch = 0;                   // from 1
  double loss = 0;                          // mean over the training batches, before each step
  double test_loss = 0, test_accuracy = 0;  // after the epoch, computed on this computer
  Cycles cycles;                            // modelled, of all steps of the epoch
};

// The figures of a run so far.
struct ResidentReport {
  device::Machine machine;
  std::int64_t steps = 0, steps_per_epoch = 0;
  std::vector<ResidentEpoch> epochs;
  Cycles step;            // modelled, of the last step: passes, loss, biases and optimiser
  Cycles layer_by_layer;  // planned, of a step whose layers are programs of their own
  bool layer_by_layer_fits = false;
  Bytes memory;  // of the fullest tile
};

// Trains a network with fixed patterns as one program of a modelled machine (runtime::Network):
// weights, biases and states of the optimiser stay on the tiles for the whole run, and the host
// loads images, labels and the learning rate of each step. Batches, first weights, optimiser and
// learning rates are those of a Trainer with the same options, so that losses differ by the
// rounding of sums in another order only; in half also because gradients are not scaled. Layers
// that store all weights get dense plans. One thread at a time uses it.
class ResidentTraining {
 public:
  // Data and executor must outlive the object. Takes first_weights(options), or other ones. Throws
  // Error{InvalidArgument} as Trainer does and for methods that change patterns, which belong to
  // the program; Error{NoSolution} if no plans fit the machine or weights do not fit their buckets.
  ResidentTraining(const NetworkOptions& network, std::span<const sparse::Csr<float>> weights,
                   const DataSet& data, const TrainOptions& options, const device::Machine& machine,
                   Executor& executor);
  ~ResidentTraining();

  // Makes steps up to the end of the epoch and evaluates the network on this computer. Returns
  // false if `stop` ended it between two steps. `progress` is called after each step with the
  // number of steps so far. Throws Error{InvalidArgument} if a loss is not finite.
  bool epoch(std::stop_token stop = {}, const std::function<void(std::int64_t)>& progress = {});

  const ResidentReport& report() const;

  // Returns the network of the evaluations, which has the patterns of the tiles.
  const Network<>& network() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Returns one line for each epoch and for the comparison, and an object of JSON.
std::string to_text(const ResidentEpoch& epoch);
std::string to_text(const ResidentReport& report);
std::string to_json(const ResidentReport& report);

}  // namespace tessera::train
