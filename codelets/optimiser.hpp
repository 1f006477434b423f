#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

#include "tessera/base/half.hpp"

// The optimisers, as this computer and the tiles of a modelled machine run them: on values and
// gradients in the same order, as the values of a bucket and their gradients are.
namespace tessera::codelets {

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

// Does the same for an optimiser of values that are computed in float: numbers must be in their
// ranges when they are rounded to float, too.
void check_in_float(const Optimiser& optimiser);

// Returns how many numbers of state each value has: 0, 1 or 2.
std::int64_t states_of(const Optimiser& optimiser);
inline constexpr std::size_t kMostStates = 2;

// Returns "sgd", "adam", "adagrad", "nesterov", "torch-sgd" or "adamw"; the text is valid as long
// as the program.
std::string_view name_of(const Optimiser& optimiser);

// A number of a rule, with its name in the structs above and in messages.
struct RuleNumber {
  // The legal numbers: at least 0; in [0, 1); above 0.
  enum class Range { NotNegative, Share, AboveZero };

  std::string_view name;
  double* value = nullptr;
  Range range = Range::NotNegative;
};

// The numbers of a rule in the order of its struct. Those that it does not have are nameless.
using RuleNumbers = std::array<RuleNumber, 5>;
RuleNumbers numbers_of(Rule& rule);

// Returns the optimiser with another learning rate.
Optimiser with_learning_rate(Optimiser optimiser, double learning_rate);

// Returns the optimiser without any decay, as biases take it.
Optimiser without_decay(Optimiser optimiser);

// Makes step t (counted from 1) on values[i] with gradients[i]. Computes in the type C of the
// states, to which the numbers of the optimiser are rounded once, and rounds a value once. `states`
// has states_of() arrays of the same length. This is the only code that changes values by a rule,
// so steps on whole lists and on parts of them give the same bits. Nothing is checked. Never
// allocates, throws or prints; may run on many tiles at the same time. O(values). T is float, Half,
// BFloat16 with C = float, or double with C = double.
template <class T, class C = float>
void update_values(const Optimiser& optimiser, std::int64_t t, std::span<const T> gradients,
                   std::span<C* const> states, T* values) noexcept;

}  // namespace tessera::codelets
