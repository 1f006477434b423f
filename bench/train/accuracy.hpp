#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/bench/report.hpp"
#include "tessera/train/data/idx.hpp"
#include "tessera/train/trainer.hpp"

namespace tessera::bench {

// One way to train on Fashion-MNIST: batch 128, momentum 0.9 by PyTorch's rule, decay 2e-4, rate
// 0.1 falling as a cosine.
struct TrainCase {
  std::string name;
  train::NetworkOptions network;
  train::Method method;
  std::int64_t epochs = 30, seeds = 3, every = 100;
  double fraction = 0.3;
};

// Returns all cases that a bar of accuracy needs.
const std::vector<TrainCase>& train_cases();

// Returns the test accuracy in % of a case after its last epoch, for one seed.
double test_accuracy(const TrainCase& one, const train::DataSet& data, std::uint64_t seed,
                     Executor& executor);

// Prints the mean accuracies over the seeds and one line for each bar.
void accuracy_bars(const train::DataSet& data, Executor& executor, Report& report);

}  // namespace tessera::bench
