#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

namespace tessera::train {

// How one weight w changes by its gradient, after g = rescale * gradient, then g brought into
// [-clip, clip], then g += weight_decay * w: decay is added after clipping and is never clipped.

// m = momentum * m - learning_rate * g, w += m; without momentum w -= learning_rate * g, no state.
struct Sgd {
  double learning_rate = 0.01;  // at least 0
  double momentum = 0;          // in [0, 1)
  friend bool operator==(const Sgd&, const Sgd&) = default;
};

// m = beta1 * m + (1 - beta1) * g, v = beta2 * v + (1 - beta2) * g * g, w -= rate * m / (sqrt(v) +
// epsilon) with rate = learning_rate * sqrt(1 - beta2^t) / (1 - beta1^t), t the steps so far and
// this one, counted for all rows together.
struct Adam {
  double learning_rate = 0.001;       // at least 0
  double beta1 = 0.9, beta2 = 0.999;  // in [0, 1)
  double epsilon = 1e-8;              // above 0
  friend bool operator==(const Adam&, const Adam&) = default;
};

// h += g * g, w -= learning_rate * g / (sqrt(h) + epsilon). Needs weight_decay 0.
struct AdaGrad {
  double learning_rate = 0.01;  // at least 0
  double epsilon = 1e-7;        // above 0
  friend bool operator==(const AdaGrad&, const AdaGrad&) = default;
};

// A rule and what is done to every gradient before it.
struct Optimiser {
  std::variant<Sgd, Adam, AdaGrad> rule;
  double rescale = 1;                         // gradients are multiplied by it: 1 / batch
  std::optional<double> clip = std::nullopt;  // at least 0; 0 makes every gradient zero
  double weight_decay = 0;                    // at least 0
  // Rows without a gradient stay as they are. Otherwise they have a gradient of zero, so decay and
  // old moments move them. The two differ exactly when there is decay, momentum or moments.
  bool lazy = true;

  friend bool operator==(const Optimiser&, const Optimiser&) = default;
};

// Error{InvalidArgument} that names field, value and range for numbers outside those above.
void check(const Optimiser& optimiser);

// Numbers kept for each weight: 0, 1 or 2.
std::int64_t states_of(const Optimiser& optimiser);

// "adam", "sgd", "adagrad".
std::string name_of(const Optimiser& optimiser);

}  // namespace tessera::train
