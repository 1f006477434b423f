#pragma once

#include <cstdint>
#include <string>

#include "tessera/base/random.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/planner/network.hpp"
#include "tessera/runtime/network.hpp"

namespace tessera::runtime {

// A small network drawn at random, and how it runs.
struct RandomNetwork {
  NetworkSpec spec;
  device::Machine machine = device::machine_preset("gc200");
  device::ExchangeMode mode = device::ExchangeMode::Isolate;
};

inline NetworkLayer draw_network_layer(Random& random, std::int64_t inputs) {
  const codelets::ActivationRule rules[] = {{},
                                            {codelets::Activation::Relu},
                                            {codelets::Activation::Relu, 0.5f},
                                            {codelets::Activation::Gelu}};
  const BlockShape blocks[] = {{1, 1}, {4, 4}, {8, 8}, {1, 1}, {2, 5}};
  NetworkLayer layer{.outputs = 1 + random.below(40),
                     .inputs = inputs,
                     .block = blocks[random.below(5)],
                     .density = 0.1 + 0.6 * random.unit(),
                     .bias = random.below(4) != 0,
                     .activation = rules[random.below(4)]};
  if (random.below(4) == 0) {
    layer.dense = true;
    layer.density = 1;
    layer.block = {1, 1};
  }
  return layer;
}

// Draws a network of one to three layers. Losses and optimisers come in turn.
inline RandomNetwork draw_network(Random& random, int i) {
  const std::int64_t tiles[] = {1, 2, 3, 8, 16, 37};
  RandomNetwork drawn;
  drawn.spec.batch = 1 + random.below(40);
  drawn.spec.loss =
      i % 2 == 0 ? codelets::Loss::SoftmaxCrossEntropy : codelets::Loss::MeanSquaredError;
  drawn.spec.optimiser.rule = codelets::Sgd{0.1, i % 4 < 2 ? 0 : 0.9};
  drawn.machine.tiles = tiles[random.below(6)];
  drawn.mode = i % 8 == 7 ? device::ExchangeMode::Share : device::ExchangeMode::Isolate;
  std::int64_t inputs = 1 + random.below(40);
  const std::int64_t layers = 1 + random.below(3);
  for (std::int64_t l = 0; l < layers; ++l) {
    drawn.spec.layers.push_back(draw_network_layer(random, inputs));
    inputs = drawn.spec.layers.back().outputs;
  }
  if (layers > 1 && random.below(4) == 0) drawn.spec.layers.front().recompute = true;
  return drawn;
}

inline std::string text_of(const RandomNetwork& drawn, int i) {
  std::string text = "network " + std::to_string(i) + ", batch " +
                     std::to_string(drawn.spec.batch) + ", " + std::to_string(drawn.machine.tiles) +
                     " tiles";
  for (const NetworkLayer& layer : drawn.spec.layers)
    text += ", " + std::to_string(layer.outputs) + " x " + std::to_string(layer.inputs) + " " +
            std::string(to_string(layer.activation.kind));
  return text;
}

}  // namespace tessera::runtime
