#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/random.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/planner/network_json.hpp"
#include "tessera/runtime/network.hpp"
#include "tessera/sparse/formats.hpp"

// The weights of the network that a file describes, and a batch for it.
namespace tessera::train {

// Reads the text of the file at `path` and the sizes of the weights that it names, which replace
// the densities. Paths are relative to the folder of the file. Throws Error{BadInput} for a file
// that cannot be read, for weights of another size than their layer, and for values that the
// network's type does not hold.
planner::NetworkFile read_network(std::string_view text, const std::string& path);

// Makes every second layer of a training step recompute, from the first one on, whatever the file
// says. Throws Error{InvalidArgument} without a loss or with a single layer.
void recompute_every_second(planner::NetworkSpec& spec);

// Returns the weights of a layer, counted from 0: those of its file, or drawn from the seed. Drawn
// values are uniform between -a and a, where a is the root of 3 / (weights of an output), so that
// outputs are about as large as inputs.
sparse::Csr<float> weights_of(const planner::NetworkFile& file, std::int64_t layer,
                              std::uint64_t seed);

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

}  // namespace tessera::train
