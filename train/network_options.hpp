#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/data_type.hpp"
#include "tessera/planner/network.hpp"
#include "tessera/sparse/formats.hpp"
#include "tessera/train/rewire/density.hpp"

namespace tessera::train {

// A network that is to be trained, and how its first weights are drawn. It is either given in
// short, as fully connected layers with biases, and ReLU after all layers but the last, or as a
// spec.
struct NetworkOptions {
  std::vector<std::int64_t> sizes;  // inputs, widths of the layers; at least two, each at least 1
  double density = 0.1;             // in (0, 1]
  Distribution distribution = Distribution::Uniform;
  BlockShape block;          // of sparse layers; dense ones are stored in elements
  std::int64_t batch = 128;  // columns of operands, at least 1
  std::uint64_t seed = 1;    // of patterns and first values

  // Blocks that each row and each column of blocks of a sparse layer has at least, first and after
  // rewires, so that no neuron is cut off; at least 0.
  std::int64_t min_per_neuron = 0;

  // True: each row of blocks of a sparse layer has as many blocks as the others, first and after
  // rewires (rewire/rows.hpp). Without min_per_neuron.
  bool constant_fan_in = false;

  // True for a training with a schedule of densities (TrainOptions): layers that are dense at first
  // keep their block, and host_layers() lets a forecast choose the passes that multiply zeros.
  bool density_changes = false;

  // Passes compute in float, or in half on a modelled machine. All that the network keeps is float.
  DataType data_type = DataType::Float;

  // The layers as a file of `tessera network` describes them. Beside it only seed, min_per_neuron
  // and constant_fan_in may be set.
  std::optional<planner::NetworkSpec> spec = {};

  friend bool operator==(const NetworkOptions&, const NetworkOptions&) = default;
};

// Returns the network as a spec, with the loss of a training step. Layers of density 1 that never
// change are stored in elements. Throws Error{InvalidArgument} as blocks_per_layer and
// planner::check do, for fewer than two sizes, and for options that the spec has already.
planner::NetworkSpec spec_of(const NetworkOptions& options);

// Returns how many blocks each layer stores at a density, by the network's distribution. Throws
// Error{InvalidArgument} as blocks_per_layer does, for fewer than two sizes, and for a density at
// which rows and columns cannot have min_per_neuron blocks. A spec has its own densities.
std::vector<std::int64_t> blocks_at(const NetworkOptions& options, double density);

// Returns the first weights of a network: patterns drawn uniformly, or uniformly in each row for a
// constant fan-in, with the blocks of blocks_per_layer (changed by with_least_per_neuron, if
// min_per_neuron is above 0), and normal values of deviation sqrt(2 / fan-in), with the fan-in that
// each output really has. Parts of blocks beyond a layer are 0.
std::vector<sparse::Csr<float>> first_weights(const NetworkOptions& options);

}  // namespace tessera::train
