#pragma once

#include <cstdint>
#include <string>

namespace tessera::bench {

// Returns the median seconds of SciPy's product of a side x side CSR matrix of this density with
// `z` columns, in a process of its own; 0 without that Python or its SciPy.
double scipy_seconds(std::int64_t side, double density, std::int64_t z, const std::string& python,
                     int repeats);

}  // namespace tessera::bench
