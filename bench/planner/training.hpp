#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/bench/planner/bars.hpp"
#include "tessera/bench/planner/simulate.hpp"

namespace tessera::bench {

// A random training layer under the plan that the planner chooses, and under the plans nearby.
struct TrainingLayer {
  std::string name;
  Problem problem;
  Run chosen;
  std::optional<Cycles> best_nearby;  // fewest simulated cycles, those of `chosen` among them
  Dims best_partition;                // of best_nearby; without meaning if there is none
  bool best_has_two_layouts = false;  // likewise

  // Returns how many times as many cycles the chosen plan takes as the best one nearby; no value
  // if the chosen plan did not run.
  std::optional<double> ratio() const;
};

// The number of layers that the bars are for.
inline constexpr int kTrainingLayers = 48;

// Draws `count` layers with all three passes, of all blocks and of half and float, with 368 to 1472
// tiles of a GC200, and runs them on the engine. The planner is told the pattern, as
// sparse_fc_layer does, and plans sparsely. The plans nearby are those of the 8 partitions with the
// fewest planned cycles, pinned one by one, the best plan with one layout, and 14 with two layouts:
// one of the two has the fewest planned cycles, the other one is among the 4 cheapest.
std::vector<TrainingLayer> run_training_layers(std::uint64_t seed, int count, Executor& executor);

// The bars of these layers: all of them ran, and the median and the largest ratio.
std::vector<Bar> training_bars(const std::vector<TrainingLayer>& layers);

// Formats a table with a row for each layer.
std::string to_text(const std::vector<TrainingLayer>& layers);

}  // namespace tessera::bench
