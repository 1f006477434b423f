#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/tools/commands/train_arguments.hpp"
#include "tessera/train/machine_step.hpp"
#include "tessera/train/report.hpp"
#include "tessera/train/resident.hpp"

namespace tessera::tools {

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

// Trains and prints a line for each epoch, unless the output is JSON or CSV. Ctrl-C ends it between
// two steps. Checkpoints are written after each epoch and at the end.
TrainOutcome run_training(const TrainArguments& a);

// Returns the figures of the epochs as CSV, and everything as JSON.
std::string training_csv(const TrainOutcome& outcome);
std::string training_json(const TrainArguments& a, const TrainOutcome& outcome);

}  // namespace tessera::tools
