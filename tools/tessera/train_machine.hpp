#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/base/units.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/report/dense_verdict.hpp"
#include "tessera/train/machine_layer.hpp"
#include "tessera/train/network.hpp"

namespace tessera::tools {

// One pass of one layer in a training step on a modelled machine.
struct StepPass {
  std::int64_t layer = 0;  // from 1
  Pass pass = Pass::Fwd;
  Cycles cycles;                // of the last step, with the pattern of that step
  std::optional<Cycles> dense;  // planned, of the layer with all weights; empty: no plan fits
};

// The modelled cost of a training step, which the passes of all layers make up, beside that of
// dense layers of the same sizes and batch.
struct MachineStep {
  device::Machine machine;
  std::vector<StepPass> passes;
  Bytes pattern_bytes;  // that the machine is sent for a new pattern of every layer
  report::DenseComparison comparison;

  Cycles cycles() const;
};

// Returns a function that makes the layers of a network on this machine. A problem is planned when
// it is met for the first time. The executor must outlive the layers.
train::MakeLayer<train::MachineLayer> machine_layers(const device::Machine& machine,
                                                     Executor& executor);

// Returns the cost of the last step of a network; nothing if it has made none.
std::optional<MachineStep> machine_step(const train::Network<train::MachineLayer>& network,
                                        const device::Machine& machine);

// Returns a table of the passes, the bytes of a pattern and the verdict, as text and as JSON.
std::string to_text(const MachineStep& step);
std::string to_json(const MachineStep& step);

}  // namespace tessera::tools
