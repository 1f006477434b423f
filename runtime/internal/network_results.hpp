#pragma once

#include <span>
#include <vector>

#include "tessera/runtime/network.hpp"

namespace tessera::runtime::internal {

// The parameters of one layer, for a computation outside of the machine.
struct PlainLayer {
  sparse::Csr<float> weights;
  std::span<const float> bias;  // [outputs]
};

// Returns the largest magnitude of the result of each layer, computed on one thread of this
// computer with sums in float, and results rounded to the network's type: NaN if one is not a
// number. For messages, because the memory of the tiles that held the results may hold other data
// by then.
std::vector<double> largest_results(const NetworkSpec& spec, std::span<const PlainLayer> layers,
                                    MatrixView<const float> inputs);

}  // namespace tessera::runtime::internal
