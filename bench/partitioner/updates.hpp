#pragma once

#include <string>

#include "tessera/bench/partitioner/workload.hpp"
#include "tessera/bench/report.hpp"

namespace tessera::bench {

// Measures updates of 1 % and 10 % of the blocks with their values, anywhere or in the first rows
// only, against encoding the matrix with its values again.
void update_ratio(Report& report, const std::string& name, const Layer& layer, bool anywhere);

// Measures updates of 0.2 % to 50 % of the blocks, and reports the share at which the update takes
// longest beside encoding again, which it should choose where that is cheaper.
void slowest_update(Report& report, const std::string& name, const Layer& layer, bool anywhere);

}  // namespace tessera::bench
