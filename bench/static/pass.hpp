#pragma once

#include "tessera/bench/report.hpp"

namespace tessera::bench {

// Measures a simulated Fwd of a static layer on one thread beside a plain loop, in both exchange
// modes, and its peak memory beside that of its operands, words and partial sums: the layers of
// model_bench.
void static_pass_bars(Report& report);

}  // namespace tessera::bench
