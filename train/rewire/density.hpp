#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/base/block_shape.hpp"

namespace tessera::train {

// Rules that share out the weights of a network over its layers.
enum class Distribution {
  Uniform,  // every layer has the same density, but the last of several is dense
  // The density of a layer grows with (x + y) / (x * y), so narrow layers keep more. x and y are
  // the sides of the layer itself, whatever its blocks, as RigL's authors define it: padding is no
  // part of a layer, so the densities of two layers keep their ratio when their blocks change.
  ErdosRenyi
};

// Returns "uniform" or "erk".
const char* to_string(Distribution distribution);

// The names of all distributions can be read by named() (base/named.hpp).
inline constexpr auto kDistributions = {Distribution::Uniform, Distribution::ErdosRenyi};

// The size of a layer's weights [rows][cols] in elements. Its blocks cover sides that are no
// multiple of the block, as those of the next multiple do.
struct LayerSize {
  std::int64_t rows = 0, cols = 0;
  BlockShape block;

  // Returns the number of blocks that the dense layer has.
  std::int64_t blocks() const;
};

// Returns how many blocks each layer of a network stores.
//
// Uniform: each layer stores round(density * blocks), except for the last of several layers, which
// stores all. ErdosRenyi: the sum is exactly round(density * blocks of all layers); a layer that
// would exceed its blocks is dense, and the others share what is left in the same proportions.
// Fractions are rounded by largest remainder, equal ones to the earlier layer.
//
// Throws Error{InvalidArgument} for a density outside (0, 1] or NaN, for no layers, for sides below
// 1, and for a density at which a layer stores no block; that message names the layer and a density
// that works. O(layers^2).
// Example: 784-512-512-10 at 0.005 with ErdosRenyi stores 1524, 1205 and 614 elements.
std::vector<std::int64_t> blocks_per_layer(std::span<const LayerSize> layers, double density,
                                           Distribution distribution);

// Returns the densities by which ErdosRenyi is known, one for each layer: those of RigL's authors,
// whose total rounds the blocks of each layer up. Throws as blocks_per_layer, but a layer without
// blocks is no error.
std::vector<double> erdos_renyi_densities(std::span<const LayerSize> layers, double density);

}  // namespace tessera::train
