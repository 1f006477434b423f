#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tessera/device/machine.hpp"
#include "tessera/planner/network.hpp"
#include "tessera/runtime/network.hpp"

namespace tessera::report {

// Returns true for work of all layers together, which lists show behind that of single layers.
inline bool serves_all(planner::NetworkWork work) {
  return work == planner::NetworkWork::UpdateBiases;
}

// A run of a network beside the same network with all weights on the same machine. Each pass of a
// dense layer has the cycles of its dense plan, which fetches operands that are spread evenly over
// all tiles; its sums are the fastest, half for halves. The optimiser changes all weights, spread
// evenly. All other work (bias, activation, loss) is that of the run, and what the dense network
// would take to hand tensors over beyond these passes is left out.
struct DenseNetwork {
  // One kind of work of one layer.
  struct Work {
    planner::NetworkWork work = planner::NetworkWork::Fwd;
    std::int64_t layer = 0;  // counted from 0
    Cycles sparse, dense;    // of the run, and of the dense layer
  };
  std::vector<Work> work;    // in the order of the program
  Cycles sparse, dense;      // sums
  Bytes resident;            // of weights and optimiser states on each tile, spread evenly
  std::string does_not_fit;  // the reason why there is no dense network; empty: there is one

  // Returns the comparison as a sentence without its end, and as a JSON object.
  std::string to_text() const;
  std::string to_json() const;
};

// `cost` must be of a finished run of the network. Plans every size of a layer once.
DenseNetwork compare_with_dense(const runtime::Network& network, const runtime::NetworkCost& cost,
                                const device::Machine& machine);

}  // namespace tessera::report
