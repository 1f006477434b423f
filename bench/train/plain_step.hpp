#pragma once

#include <span>

namespace tessera::bench {

// Makes a step of SGD with momentum and decay as a user would write it, compiled with -O3.
void plain_momentum_step(std::span<float> weights, std::span<const float> gradients,
                         std::span<float> moments);

}  // namespace tessera::bench
