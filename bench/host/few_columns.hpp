#pragma once

namespace tessera::bench {

// Measures layers of 4096 x 11008 with 1, 4 and 16 columns, whose time is that of reading the
// weights, beside a dense bfloat16 product of the same size, on all cores. Returns true if every
// bar is met.
bool run_few_columns_bars();

}  // namespace tessera::bench
