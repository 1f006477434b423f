#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/base/data_type.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/planner/network_json.hpp"
#include "tessera/train/machine_step.hpp"
#include "tessera/train/report.hpp"
#include "tessera/train/resident.hpp"

namespace tessera::tools {

// The options of `tessera train`.
struct TrainArguments {
  std::string file;                             // of a network; empty: the options describe it
  std::optional<planner::NetworkFile> network;  // that the file describes
  bool gives_rate = false;                      // the options, even if there is a file
  bool resident = false;                        // as one program of a modelled machine
  std::vector<std::int64_t> layers = {784, 1024, 10};
  std::string method = "rigl", distribution = "uniform";
  double density = 0.1, learning_rate = 0.1, fraction = 0.3, factor = 2;
  std::string optimiser = "sgd";
  std::string density_schedule;  // the curve from first_density to density; empty: none
  double first_density = 1;
  std::string search = "exact";  // of method top-k
  std::int64_t min_per_neuron = 0;
  bool constant_fan_in = false;
  std::int64_t block = 1, batch = 128, epochs = 30, every = 100, seed = 1;
  std::int64_t images = 0;  // that are used of each part of the data set; 0: all
  std::string machine = device::kHostMachine;
  DataType data_type = DataType::Float;  // of the passes
  int threads = 0;
  std::string data, checkpoint, resume;
  bool beside_dense = false;
  bool csv = false, json = false;
  std::string html;
};

// The figures of a run. `dense` is the run of the same network with all weights, if it was asked
// for.
struct TrainOutcome {
  std::vector<std::string> notes;  // lines that describe the network
  train::TrainReport sparse;
  std::optional<train::TrainReport> dense;
  std::optional<train::MachineStep> machine;      // of the sparse run on a modelled machine
  std::optional<train::ResidentReport> resident;  // instead of the other figures
  std::int64_t dead_neurons = 0;                  // of the sparse run, at its end
  bool is_complete = false;
};

// Reads the file of the network, if there is one, and returns the arguments with what it says.
// Throws the errors of load_network.
TrainArguments with_network_file(TrainArguments a);

// Trains and prints a line for each epoch, unless the output is JSON or CSV. Ctrl-C ends it between
// two steps. Checkpoints are written after each epoch and at the end.
TrainOutcome run_training(const TrainArguments& a);

// Returns the figures of the epochs as CSV, and everything as JSON.
std::string training_csv(const TrainOutcome& outcome);
std::string training_json(const TrainArguments& a, const TrainOutcome& outcome);

}  // namespace tessera::tools
