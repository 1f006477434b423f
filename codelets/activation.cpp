#include "tessera/codelets/activation.hpp"

#include <algorithm>
#include <cmath>

#include "tessera/base/error.hpp"

namespace tessera::codelets {
namespace {

constexpr float kCubic = 0.044715f;            // of the published approximation of GELU
constexpr float kRootOfTwoByPi = 0.79788456f;  // sqrt(2 / pi)

float gelu(float v) {
  return 0.5f * v * (1 + std::tanh(kRootOfTwoByPi * (v + kCubic * v * v * v)));
}

float gelu_derivative(float v) {
  const float t = std::tanh(kRootOfTwoByPi * (v + kCubic * v * v * v));
  const float inner = kRootOfTwoByPi * (1 + 3 * kCubic * v * v);
  return 0.5f * (1 + t) + 0.5f * v * (1 - t * t) * inner;
}

// Calls visit(i, end, row) for the part of each row: elements i .. end of the run.
template <class Visit>
void for_each_row(const ElementRun& run, Visit&& visit) {
  std::int64_t row = 0;
  for (std::int64_t e = run.begin; e < run.end; ++row) {
    const std::int64_t end = std::min(run.end, (e / run.columns + 1) * run.columns);
    visit(e - run.begin, end - run.begin, row);
    e = end;
  }
}

template <class T, class Apply>
void apply_with_bias(const ElementRun& run, const float* bias, T* sums, T* results, Apply&& apply) {
  for_each_row(run, [&](std::int64_t i, std::int64_t end, std::int64_t row) {
    const float added = bias == nullptr ? 0 : bias[row];
    for (; i < end; ++i) {
      sums[i] = T(float(sums[i]) + added);
      results[i] = T(apply(float(sums[i])));
    }
  });
}

}  // namespace

std::string_view to_string(Activation activation) {
  switch (activation) {
    case Activation::None:
      return "none";
    case Activation::Relu:
      return "relu";
    case Activation::Gelu:
      return "gelu";
  }
  assertion_failed("every activation has a name", __FILE__, __LINE__);
}

template <class T>
void add_bias_and_activate(const ElementRun& run, const float* bias, const ActivationRule& rule,
                           T* sums, T* results) noexcept {
  switch (rule.kind) {
    case Activation::None:
      return apply_with_bias(run, bias, sums, results, [](float v) { return v; });
    case Activation::Relu:
      return apply_with_bias(run, bias, sums, results, [cap = rule.cap](float v) {
        return std::min(std::max(v, 0.0f), cap);
      });
    case Activation::Gelu:
      return apply_with_bias(run, bias, sums, results, gelu);
  }
}

template <class T>
void multiply_by_derivative(std::int64_t count, const ActivationRule& rule, const T* kept,
                            T* gradients) noexcept {
  const auto apply = [&](auto derivative) {
    for (std::int64_t i = 0; i < count; ++i)
      gradients[i] = T(float(gradients[i]) * derivative(float(kept[i])));
  };
  switch (rule.kind) {
    case Activation::None:
      return;
    case Activation::Relu:
      return apply([cap = rule.cap](float v) { return v > 0 && v < cap ? 1.0f : 0.0f; });
    case Activation::Gelu:
      return apply(gelu_derivative);
  }
}

template <class T>
void sum_rows(const ElementRun& run, const T* values, float* sums) noexcept {
  for_each_row(run, [&](std::int64_t i, std::int64_t end, std::int64_t row) {
    float sum = 0;
    for (; i < end; ++i) sum += float(values[i]);
    sums[row] = sum;
  });
}

#define TESSERA_ACTIVATION(T)                                                                     \
  template void add_bias_and_activate(const ElementRun&, const float*, const ActivationRule&, T*, \
                                      T*) noexcept;                                               \
  template void multiply_by_derivative(std::int64_t, const ActivationRule&, const T*,             \
                                       T*) noexcept;                                              \
  template void sum_rows(const ElementRun&, const T*, float*) noexcept;
TESSERA_ACTIVATION(float)
TESSERA_ACTIVATION(Half)
TESSERA_ACTIVATION(BFloat16)
#undef TESSERA_ACTIVATION

}  // namespace tessera::codelets
