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
#include "tessera/train/network.hpp"
#include "tessera/train/pattern_update.hpp"
#include "tessera/train/trainer.hpp"

namespace tessera::train {

// One pass of one layer in a training step on a modelled machine.
struct StepPass {
  std::int64_t layer = 0;  // from 1
  Pass pass = Pass::Fwd;
  Cycles cycles;                // of the last step, with the pattern of that step
  std::optional<Cycles> dense;  // planned, of the layer with all weights; empty: no plan fits
};

// The optimiser's step on the weights of one layer, on the tiles that keep them. `dense` is that on
// all weights of the layer, spread evenly.
struct OptimiserStep {
  std::int64_t layer = 0;  // from 1
  Cycles cycles, dense;
};

// The search for the largest gradients of one layer at a rewire, the mean of all.
struct LayerSearch {
  std::int64_t layer = 0;      // from 1
  Cycles gradient, selection;  // the dense gradient, and keeping the best places
};

// The modelled cost of a training step, which the passes and optimisers of all layers make up,
// beside that of dense layers of the same sizes and batch.
struct MachineStep {
  device::Machine machine;
  device::HostLink link;
  std::vector<StepPass> passes;
  std::vector<OptimiserStep> optimisers;
  Bytes pattern_bytes;                  // that the machine is sent for a new pattern of every layer
  std::optional<PatternUpdate> update;  // the mean of all rewires; empty if there was none
  std::vector<LayerSearch> searches;    // of the layers that searched on the machine
  report::DenseComparison comparison;

  Cycles cycles() const;
  double seconds() const { return double(cycles().value) / machine.clock_hz; }
  std::optional<double> dense_seconds() const;  // empty if a pass has no dense plan
};

// Returns the cost of the last step of a run; nothing if it has made none.
std::optional<MachineStep> machine_step(const Trainer& trainer, const ModelledMachine& on);

// Returns a table of the passes, the cost of a rewire and the verdict, as text and as JSON.
std::string to_text(const MachineStep& step);
std::string to_json(const MachineStep& step);

}  // namespace tessera::train
