#pragma once

#include <vector>

#include "tessera/bench/layer/grid.hpp"

namespace tessera::bench {

// One pass with the stored values, and with the zeros, too: median seconds of runs in turns.
struct ChoiceResult {
  GridCase grid_case;
  double sparse = 0, dense = 0;
  bool takes_dense = false;  // what host::DenseChoice::Auto takes, by rates that were measured here

  // The time of what it takes by the time of the faster: 1 if it takes that.
  double ratio() const;
};

// Runs the chosen cases of float that take less than 8 GFLOP with their zeros, prints a line for
// each as it ends, and then for each group the geometric mean of ratio(), the share of cases above
// 1.1 and the worst. Throws std::runtime_error if a result is wrong.
void run_choices(const std::vector<GridCase>& cases, const GridChoice& choice);

}  // namespace tessera::bench
