#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "tessera/base/half.hpp"

// The steps of a layer between its product and its result: bias, activation, and the derivatives
// of both. All functions compute in float and round once to the type of their result. They never
// allocate, throw or print, and may run on many tiles at the same time. T is float, Half or
// BFloat16.
namespace tessera::codelets {

// The functions that are applied to a result with its bias.
//   None  v
//   Relu  min(max(v, 0), cap)
//   Gelu  v / 2 * (1 + tanh(sqrt(2 / pi) * (v + 0.044715 * v^3)))
enum class Activation { None, Relu, Gelu };

// Returns "none", "relu" or "gelu"; the text is valid as long as the program.
std::string_view to_string(Activation activation);

// An activation with its cap.
struct ActivationRule {
  Activation kind = Activation::None;
  float cap = std::numeric_limits<float>::infinity();  // of Relu, above 0

  friend bool operator==(const ActivationRule&, const ActivationRule&) = default;

  // Returns true if the derivative needs the sums, and not only the results.
  bool keeps_sums() const { return kind == Activation::Gelu; }
};

// A run of elements begin .. end of a result [rows][columns], counted row by row. Arrays of a run
// begin with its first element, arrays of its rows with the row of that element. The last `padding`
// columns of every row do not belong to the result: nobody needs to have written their elements, so
// they may hold anything, and no sum has them.
struct ElementRun {
  std::int64_t begin = 0, end = 0, columns = 1, padding = 0;

  std::int64_t size() const { return end - begin; }
  std::int64_t first_row() const { return begin / columns; }
  // Returns the number of rows that have an element in the run.
  std::int64_t rows() const { return end == begin ? 0 : (end - 1) / columns - begin / columns + 1; }
};

// Sets sums[i] = T(sums[i] + bias of the row) and results[i] = T(activation(sums[i])) for each
// element of the run that is not padding. A null bias is 0. `results` may be `sums`.
template <class T>
void add_bias_and_activate(const ElementRun& run, const float* bias, const ActivationRule& rule,
                           T* sums, T* results) noexcept;

// Replaces each of `count` floats v by Gelu of it, as v / (1 + exp(-2 u)) with the u whose tanh the
// formula above names, in a loop that compilers turn into vectors. Within 2^-20 of the value, or
// 2^-33 for small ones; NaN remains NaN. The bits do not depend on the position in the array.
void apply_gelu(float* values, std::int64_t count) noexcept;

// Sets gradients[i] = T(gradients[i] * derivative) for `count` elements, where the derivative is
// taken at the sums if rule.keeps_sums(), else at the results: `kept` has the one that is needed.
// The derivative of Relu is 1 between 0 and its cap, both excluded, and 0 elsewhere.
template <class T>
void multiply_by_derivative(std::int64_t count, const ActivationRule& rule, const T* kept,
                            T* gradients) noexcept;

// Writes the sum of each row's elements in the run to sums[rows()], added in order and without the
// padding.
template <class T>
void sum_rows(const ElementRun& run, const T* values, float* sums) noexcept;

}  // namespace tessera::codelets
