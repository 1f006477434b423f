#include "tessera/bench/train/plain_step.hpp"

#include <cstddef>

namespace tessera::bench {

void plain_momentum_step(std::span<float> weights, std::span<const float> gradients,
                         std::span<float> moments) {
  constexpr float kRate = 0.01f, kMomentum = 0.9f, kDecay = 2e-4f;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    moments[i] = kMomentum * moments[i] + gradients[i] + kDecay * weights[i];
    weights[i] -= kRate * moments[i];
  }
}

}  // namespace tessera::bench
