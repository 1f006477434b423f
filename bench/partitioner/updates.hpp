#pragma once

#include <string>

#include "tessera/bench/partitioner/workload.hpp"
#include "tessera/bench/report.hpp"

namespace tessera::bench {

// Updates of 1 % and 10 % of the blocks, anywhere or in the first rows only, with their values,
// against a fresh encode with values.
void update_ratio(Report& report, const std::string& name, const Layer& layer, bool anywhere);

}  // namespace tessera::bench
