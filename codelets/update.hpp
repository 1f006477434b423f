#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "tessera/base/half.hpp"

// The optimisers as a tile runs them, on values and gradients in the same order, as the values of a
// bucket and their gradients are. The rules are those of train::Optimiser.
namespace tessera::codelets {

// The rules by which a value w changes with its gradient g.
//   Sgd       w -= rate * g
//   Momentum  m = momentum * m - rate * g, w += m
//   AdaGrad   h += g * g, w -= rate * g / (sqrt(h) + epsilon)
//   Adam      m = beta1 * m + (1 - beta1) * g, v = beta2 * v + (1 - beta2) * g * g,
//             w -= rate * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + epsilon),
//             where t is the number of steps, this one included
enum class Update { Sgd, Momentum, AdaGrad, Adam };

// Returns "sgd", "momentum", "adagrad" or "adam"; the text is valid as long as the program.
std::string_view to_string(Update update);

// Returns how many numbers of state each value has: 0, 1 or 2.
std::int64_t states_of(Update update);

// A rule with its constants.
struct UpdateRule {
  Update kind = Update::Sgd;
  double rate = 0.01;                 // at least 0
  double momentum = 0.9;              // Momentum, in [0, 1)
  double beta1 = 0.9, beta2 = 0.999;  // Adam, in [0, 1)
  double epsilon = 1e-8;              // AdaGrad and Adam, above 0

  friend bool operator==(const UpdateRule&, const UpdateRule&) = default;
};

// Throws Error{InvalidArgument}, which names the field, its value and its range, for a number
// outside the ranges above.
void check(const UpdateRule& rule);

// Makes step t (counted from 1) on values[i] with gradients[i]. Computes in float and rounds a
// value once. `states` has states_of() arrays of the same length; the first is m or h, the second
// v. Never allocates, throws or prints; may run on many tiles at the same time.
template <class T>
void update_values(const UpdateRule& rule, std::int64_t t, std::span<const T> gradients,
                   std::span<float* const> states, T* values) noexcept;

}  // namespace tessera::codelets
