#pragma once

#include <functional>
#include <memory>

#include "tessera/base/executor.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/layer/layer.hpp"
#include "tessera/train/batch_share.hpp"
#include "tessera/train/machine_layer.hpp"

namespace tessera::train {

// A layer of a network, of one group, as it is made: without weights. `machine` is what a modelled
// machine adds to it, and null on other targets.
struct MadeLayer {
  std::shared_ptr<layer::Layer> layer;
  std::shared_ptr<MachineLayer> machine = {};
};

// Makes the layer of a problem.
using MakeLayer = std::function<MadeLayer(const Problem&)>;

// Returns a function that makes layers for this computer. Dense problems get layers whose passes
// multiply all zeros; where densities change, the passes that are forecast to be faster so do,
// which may depend on the number of threads. The executor must outlive the layers.
MakeLayer host_layers(Executor& executor, bool density_changes = false);

// Returns the layer of a network on a modelled machine, whose plan keeps R in buckets. The executor
// must outlive the layer.
MadeLayer machine_layer(runtime::FullyConnected layer, const device::Machine& machine,
                        Executor& executor);

// Returns a function that makes the layers of a process with a part of the batch. Share and
// executor must outlive the layers.
MakeLayer shared_layers(BatchShare& share, Executor& executor);

}  // namespace tessera::train
