#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/base/random.hpp"
#include "tessera/train/trainer.hpp"

namespace tessera::test {

// Returns pictures of 4 x 5 pixels in three classes that a network can tell apart.
inline train::LabelledImages three_classes(std::int64_t count, std::uint64_t seed) {
  Random random(seed);
  train::LabelledImages images{4, 5, {}, {}};
  for (std::int64_t i = 0; i < count; ++i) {
    const auto label = std::uint8_t(random.below(3));
    images.labels.push_back(label);
    for (std::int64_t p = 0; p < 20; ++p)
      images.pixels.push_back(std::uint8_t(random.below(150) + (p % 3 == label ? 100 : 0)));
  }
  return images;
}

inline train::DataSet small_data() { return {three_classes(200, 1), three_classes(75, 2)}; }

inline train::NetworkOptions small_network(BlockShape block = {}) {
  return {.sizes = {20, 30, 14, 3}, .density = 0.3, .block = block, .batch = 16, .seed = 3};
}

// Rewires at steps 3, 6, 9, ...
inline train::TrainOptions small_options(const train::Method& method, std::int64_t steps = 60) {
  train::TrainOptions options = train::usual_options(method, steps);
  options.schedule.every = 3;
  return options;
}

// Everything of a run that must have the same bits, as text to compare.
inline std::vector<double> bits_of(const train::Trainer& trainer) {
  std::vector<double> bits;
  const auto add = [&](const auto& numbers) {
    for (const auto n : numbers) bits.push_back(double(n));
  };
  for (std::int64_t i = 0; i < trainer.network().layers(); ++i) {
    const auto& layer = trainer.network().state(i);
    add(layer.bias);
    add(trainer.network().weights(i).row_begin);
    add(trainer.network().weights(i).col);
    add(trainer.network().weights(i).values);
    add(trainer.state().ever_active[std::size_t(i)].bits());
    for (const auto* state : {&trainer.state().weights, &trainer.state().biases})
      for (const auto& array : (*state)[std::size_t(i)].arrays) add(array);
  }
  for (const train::EpochFigures& e : trainer.report().epochs)
    add(std::vector<double>{e.loss, e.accuracy, e.test_loss, e.test_accuracy});
  for (const train::RewireFigures& r : trainer.report().rewires) {
    add(std::vector<double>{double(r.step), r.fraction, double(r.moved), r.ever_active});
    add(r.per_input);
  }
  add(std::vector<double>{trainer.state().loss_sum, double(trainer.state().right),
                          double(trainer.report().steps)});
  return bits;
}

}  // namespace tessera::test
