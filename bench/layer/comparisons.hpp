#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "tessera/bench/layer/layer_case.hpp"
#include "tessera/bench/ratios.hpp"

namespace tessera::bench {

// Returns the time of a forward pass simulated on a gc200 with shared memory, divided by that of
// the host layer, both on one thread.
double simulated_over_host(const LayerCase& c);

// Returns the rates of real matrices divided by that of uniform patterns of the same size and
// density, for each file in `shared`/data/dlmc with at least 5,000 non-zeros (z 256, one thread).
Ratios real_over_uniform(const std::filesystem::path& shared);

// Returns the seconds of a dense product of this size on one thread: the fastest of the host
// layer's dense pass (on oneDNN if it was built in, else our own kernel on blocks of 16) and, if
// the benchmark was built with it (TESSERA_BENCH_PEERS), OpenBLAS.
double dense_seconds(const LayerCase& c);
// Returns the seconds of OpenBLAS alone on one thread; empty if the benchmark was
// built without it.
std::optional<double> open_blas_seconds(const LayerCase& c);

// Returns the density at which the sparse product of this case takes as long as the dense one,
// found by halving the interval until it is 0.02 wide; 1 if sparse is never slower.
double crossover(const LayerCase& c);

}  // namespace tessera::bench
