#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "tessera/bench/layer/layer_case.hpp"

namespace tessera::bench {

// Time of a forward pass simulated on a gc200 with shared memory over that of the host layer, both
// on one thread.
double simulated_over_host(const LayerCase& c);

// The rate of each real matrix in `folder`/data/dlmc with at least 5,000 non-zeros, over that of a
// uniform pattern of its size and density; z 256, one thread. Geometric mean; none without files.
struct RealMatrices {
  int count = 0;
  double mean = 0;
};
RealMatrices real_over_uniform(const std::filesystem::path& shared);

// Seconds of a dense product of this size: the faster of the host layer's dense pass (oneDNN where
// it was built in, else our own kernel on blocks of 16) and,
// where the bench was built with it (TESSERA_BENCH_PEERS), OpenBLAS. One thread.
double dense_seconds(const LayerCase& c);
// Seconds of OpenBLAS alone, as it is set up; none where the bench was built without it.
std::optional<double> open_blas_seconds(const LayerCase& c);

// The density at which the sparse product of this case takes as long as the dense one, by halving
// the interval until it is 0.02 wide; 1 where sparse is never slower.
double crossover(const LayerCase& c);

}  // namespace tessera::bench
