#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tessera/bench/report.hpp"

namespace tessera::bench {

// One layer whose encoding is measured.
struct TrainingRate {
  std::string name;
  std::function<void(Report&)> run;
};

// Lists the measures of writing words, source map and float values of training layers on one
// thread, in non-zeros a second: all layouts of the plan that the planner chooses, and those of the
// cheapest plan with one layout and separate GradA buckets.
std::vector<TrainingRate> training_rates();

}  // namespace tessera::bench
