#pragma once

#include <cstdint>
#include <variant>

namespace tessera::train {

// The rate stays as it is.
struct ConstantRate {
  friend bool operator==(const ConstantRate&, const ConstantRate&) = default;
};

// The rate is multiplied by `factor` after every `every` steps.
struct StepRate {
  std::int64_t every = 1000;  // at least 1
  double factor = 0.1;        // in (0, 1]
  friend bool operator==(const StepRate&, const StepRate&) = default;
};

// The rate falls from the first to the last step of the run as half a cosine:
// rate / 2 * (1 + cos(pi * (step - 1) / steps)). It stays at the last value after that.
struct CosineRate {
  std::int64_t steps = 1;  // of the whole run, at least 1
  friend bool operator==(const CosineRate&, const CosineRate&) = default;
};

// The learning rate of each step of a run. Steps are counted from 1.
// Example: {.first = 0.1, .decay = CosineRate{100}}.at(51) is 0.05.
struct LearningRate {
  double first = 0.1;  // at least 0
  std::variant<ConstantRate, StepRate, CosineRate> decay;
  // The first `warm_up` steps have the rate times step / (warm_up + 1). At least 0.
  std::int64_t warm_up = 0;

  double at(std::int64_t step) const;
  friend bool operator==(const LearningRate&, const LearningRate&) = default;
};

// Throws Error{InvalidArgument}, which names the field, its value and its range, for a number
// outside the ranges above.
void check(const LearningRate& rate);

}  // namespace tessera::train
