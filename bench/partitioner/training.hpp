#pragma once

#include "tessera/bench/report.hpp"

namespace tessera::bench {

// Measures writing words, source map and float values of training layers on one thread, in
// non-zeros a second: all layouts of the plan that the planner chooses, and those of the cheapest
// plan with one layout and separate GradA buckets.
void training_rates(Report& report);

}  // namespace tessera::bench
