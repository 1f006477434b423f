#pragma once

#include "tessera/bench/report.hpp"
#include "tessera/train/data/idx.hpp"

namespace tessera::bench {

// Bars of the searches of top-k: their times on the shapes of a transformer, with operands of
// training, and what a shortlist finds of the exact set during training.
void top_k_bars(const train::DataSet& data, Report& report);

}  // namespace tessera::bench
