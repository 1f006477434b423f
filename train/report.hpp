#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/train/activity.hpp"

namespace tessera::train {

// Figures of one epoch.
struct EpochFigures {
  std::int64_t epoch = 0;                   // from 1
  double loss = 0, accuracy = 0;            // mean over the training batches, before each step
  double test_loss = 0, test_accuracy = 0;  // after the epoch; accuracies are shares
  double seconds = 0;                       // of the run up to here
  friend bool operator==(const EpochFigures&, const EpochFigures&) = default;
};

// Figures of one rewire. Step 0 stands for the first patterns.
struct RewireFigures {
  std::int64_t step = 0;
  double fraction = 0;     // share of the stored blocks that the schedule wanted to move
  std::int64_t moved = 0;  // blocks that came to places that were free
  double ever_active = 0;  // share of all weights that were stored at any time
  double seconds = 0;      // measured, of this rewire
  std::vector<std::int32_t> per_input;  // stored weights of the first layer for each input
  friend bool operator==(const RewireFigures&, const RewireFigures&) = default;
};

// The figures of a training run so far. Seconds are measured, all else is counted or computed.
struct TrainReport {
  std::int64_t steps = 0;
  std::vector<EpochFigures> epochs;
  std::vector<RewireFigures> rewires;
  ActivitySeconds seconds;  // of all steps, rewires and evaluations
  friend bool operator==(const TrainReport&, const TrainReport&) = default;
};

// Returns the figures as a JSON object.
std::string to_json(const TrainReport& report);

// Returns a line of text with the figures of the last epoch. `density` is that of the network,
// where it changes.
std::string epoch_text(const TrainReport& report, std::optional<double> density = {});

// Returns one row of CSV for each epoch, with the name of the run in front, and their heading.
std::string to_csv(const TrainReport& report, const std::string& name);
std::string csv_heading();

}  // namespace tessera::train
