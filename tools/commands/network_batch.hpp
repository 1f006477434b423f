#pragma once

#include <cstdint>
#include <vector>

#include "tessera/base/random.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/runtime/network.hpp"

namespace tessera::tools {

// Inputs, labels and targets of a batch, drawn at random.
struct DrawnBatch {
  Matrix<float> inputs, targets;
  std::vector<std::int32_t> labels;

  DrawnBatch(const runtime::NetworkSpec& spec, std::uint64_t seed)
      : inputs(random_matrix<float>(spec.layers.front().inputs, spec.batch, seed)),
        targets(random_matrix<float>(spec.layers.back().outputs, spec.batch, seed + 1)) {
    Random random(seed + 2);
    for (std::int64_t i = 0; i < spec.batch; ++i)
      labels.push_back(std::int32_t(random.below(std::uint64_t(spec.layers.back().outputs))));
  }
  runtime::NetworkBatch view() const { return {inputs.view(), labels, targets.view()}; }
};

// Returns the seed of the batch that belongs to a seed of the weights.
inline std::uint64_t batch_seed(std::uint64_t seed) { return seed + 1'000'000; }

}  // namespace tessera::tools
