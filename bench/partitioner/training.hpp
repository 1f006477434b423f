#pragma once

#include "tessera/bench/report.hpp"

namespace tessera::bench {

// Measures words, source map and values of training layers, all layouts and separate GradA buckets
// included, for the plans that the planner chooses with its default options and with one layout
// that has separate GradA buckets.
void training_rates(Report& report);

}  // namespace tessera::bench
