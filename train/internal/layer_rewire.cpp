#include "tessera/train/internal/layer_rewire.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "tessera/train/rewire/carry.hpp"

namespace tessera::train::internal {
namespace {

std::uint64_t seed_of(std::uint64_t seed, std::int64_t step, std::int64_t layer) {
  // Mixed so that neighbouring seeds, steps and layers have nothing in common.
  std::uint64_t mixed = seed;
  for (const std::int64_t part : {step, layer}) {
    mixed = (mixed ^ std::uint64_t(part)) * 0x9e3779b97f4a7c15;
    mixed ^= mixed >> 29;
  }
  return mixed;
}

// Returns the search of a layer on its machine; empty if this computer finds the places.
LargestOnMachine search_of(MachineLayer* layer, const GradientBatch& batch,
                           const std::string& name) {
  if (layer == nullptr) return {};
  return [layer, &batch, &name](const sparse::Csr<float>& taken, std::int64_t k, BlockScore pool) {
    return layer->largest_gradients(taken, k, pool, batch, name);
  };
}

// Puts what new weights begin with into their places of the optimiser's state. Elements only.
void set_first_states(const Rewired& rewired, std::span<const sparse::PlacedBlock> placed,
                      std::int64_t area, ValueState<float>& state) {
  if (rewired.states.empty() || area != 1) return;
  std::size_t next = 0;
  for (const sparse::PlacedBlock& block : placed) {
    if (!block.is_added()) continue;
    for (std::size_t k = 0; k < rewired.states.size(); ++k)
      state.arrays[k][std::size_t(block.after)] = rewired.states[k][next];
    ++next;
  }
}

// Sets the values at some positions, which ascend.
struct FirstValues {
  std::span<const std::int64_t> positions;
  std::span<const float> values;

  void operator()(std::span<float> part, std::int64_t first) const {
    auto at = std::lower_bound(positions.begin(), positions.end(), first);
    for (; at != positions.end() && *at < first + std::ssize(part); ++at)
      part[std::size_t(*at - first)] = values[std::size_t(at - positions.begin())];
  }
};

// Returns what the method does to a layer; nothing if all places are stored and shall be.
Rewired rewired_by_method(Network<>& network, std::int64_t i, std::int64_t blocks,
                          const RewireStep& now, std::int64_t optimiser_steps) {
  const sparse::Csr<float>& weights = network.weights(i);
  if (free_places(weights) == 0 && blocks < 0) return {};
  Matrix<float> q_grad, s;
  const std::int64_t columns = network.spec().batch;
  const GradientBatch batch{
      whole_batch(network.share(), network.output_gradient(i), q_grad, columns),
      whole_batch(network.share(), network.input(i), s, columns)};
  const std::string name = fmt::format("layer {}", i + 1);
  return rewire(now.options.method, {.weights = weights,
                                     .fraction = now.fraction,
                                     .batches = {&batch, 1},
                                     .seed = seed_of(now.options.seed, now.step, i),
                                     .executor = network.executor(),
                                     .name = name,
                                     .blocks = blocks,
                                     .min_per_neuron = network.options().min_per_neuron,
                                     .constant_fan_in = network.options().constant_fan_in,
                                     .optimiser = &now.optimiser,
                                     .optimiser_steps = optimiser_steps,
                                     .largest_on_machine = search_of(
                                         network.state(i).made.machine.get(), batch, name)});
}

}  // namespace

LayerRewire rewire_layer(Network<>& network, std::int64_t i, std::int64_t blocks,
                         const RewireStep& now, const ValueState<float>& state) {
  const sparse::Csr<float>& weights = network.weights(i);
  Rewired rewired = rewired_by_method(network, i, blocks, now, state.steps);
  layer::PreparedUpdate update = network.prepare(i, rewired.change);
  ValueState<float> after = carried_state(weights, update.placed(), state);
  set_first_states(rewired, update.placed(), weights.block.area(), after);
  std::vector<std::int64_t> positions;
  for (const sparse::PlacedBlock& block : update.placed())
    if (block.is_added() && !rewired.values.empty()) positions.push_back(block.after);
  return {std::move(rewired), std::move(update), std::move(after), std::move(positions)};
}

void LayerRewire::set_first_values(layer::Layer& layer) const {
  if (!rewired.values.empty()) layer.change_values(FirstValues{positions, rewired.values});
}

}  // namespace tessera::train::internal
