#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

namespace tessera::train {

// The rules by which a weight w changes with its gradient. All rules first compute
// g = rescale * gradient, then clamp g to [-clip, clip], then add weight_decay * w to g. So decay
// is added after clipping and is never clipped.

// SGD: m = momentum * m - learning_rate * g, w += m. Without momentum w -= learning_rate * g, and
// there is no state.
struct Sgd {
  double learning_rate = 0.01;  // at least 0
  double momentum = 0;          // in [0, 1)
  friend bool operator==(const Sgd&, const Sgd&) = default;
};

// Adam: m = beta1 * m + (1 - beta1) * g, v = beta2 * v + (1 - beta2) * g * g,
// w -= rate * m / (sqrt(v) + epsilon) with rate = learning_rate * sqrt(1 - beta2^t) /
// (1 - beta1^t). t is the number of steps, this one included.
struct Adam {
  double learning_rate = 0.001;       // at least 0
  double beta1 = 0.9, beta2 = 0.999;  // in [0, 1)
  double epsilon = 1e-8;              // above 0
  friend bool operator==(const Adam&, const Adam&) = default;
};

// AdaGrad: h += g * g, w -= learning_rate * g / (sqrt(h) + epsilon). weight_decay must be 0.
struct AdaGrad {
  double learning_rate = 0.01;  // at least 0
  double epsilon = 1e-7;        // above 0
  friend bool operator==(const AdaGrad&, const AdaGrad&) = default;
};

// Nesterov: m = momentum * m - learning_rate * g, w += momentum * m - learning_rate * g.
struct Nesterov {
  double learning_rate = 0.01;  // at least 0
  double momentum = 0.9;        // in [0, 1)
  friend bool operator==(const Nesterov&, const Nesterov&) = default;
};

// SGD with momentum as PyTorch has it: m = momentum * m + g, w -= learning_rate * m. It differs
// from Sgd when the learning rate changes during a run, because m then has no old rates in it.
struct TorchSgd {
  double learning_rate = 0.01;  // at least 0
  double momentum = 0.9;        // in [0, 1)
  friend bool operator==(const TorchSgd&, const TorchSgd&) = default;
};

// AdamW: w -= learning_rate * decay * w, then Adam. The decay is not part of the gradient, so the
// moments do not see it. weight_decay must be 0.
struct AdamW {
  double learning_rate = 0.001;       // at least 0
  double beta1 = 0.9, beta2 = 0.999;  // in [0, 1)
  double epsilon = 1e-8;              // above 0
  double decay = 0.01;                // at least 0
  friend bool operator==(const AdamW&, const AdamW&) = default;
};

// The rule by which a gradient changes a weight.
using Rule = std::variant<Sgd, Adam, AdaGrad, Nesterov, TorchSgd, AdamW>;

// A rule, with the changes that every gradient gets before the rule.
struct Optimiser {
  Rule rule;
  double rescale = 1;                         // factor of gradients, for example 1 / batch
  std::optional<double> clip = std::nullopt;  // at least 0; 0 makes every gradient zero
  double weight_decay = 0;                    // at least 0

  friend bool operator==(const Optimiser&, const Optimiser&) = default;
};

// Throws Error{InvalidArgument}, which names the field, its value and its range, for a number
// outside the ranges above.
void check(const Optimiser& optimiser);

// Returns how many numbers of state each weight has: 0, 1 or 2.
std::int64_t states_of(const Optimiser& optimiser);

// Returns "sgd", "adam", "adagrad", "nesterov", "torch-sgd" or "adamw".
std::string name_of(const Optimiser& optimiser);

// Returns the optimiser with another learning rate.
Optimiser with_learning_rate(Optimiser optimiser, double learning_rate);

}  // namespace tessera::train
