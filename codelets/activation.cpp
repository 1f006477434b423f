#include "tessera/codelets/activation.hpp"

#include <algorithm>
#include <bit>
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

// Returns e^x for x in [-87, 87] without a branch or a call: 2^n e^r with whole n and |r| <= ln 2 /
// 2 and the Taylor polynomial of e^r, whose error is below 2^-26. Adding 1.5 * 2^23 rounds to n,
// whose bits are then the lowest ones of the sum. NaN gives NaN.
float exponential(float x) {
  constexpr float kLog2OfE = 1.44269504f, kRounder = 0x1.8p23f;
  constexpr float kLn2High = 0x1.62e4p-1f, kLn2Low = 1.42860677e-6f;
  const float sum = x * kLog2OfE + kRounder;
  const float n = sum - kRounder;
  const float r = (x - n * kLn2High) - n * kLn2Low;
  const float series =
      1 + r * (1 + r * (1 / 2.0f +
                        r * (1 / 6.0f +
                             r * (1 / 24.0f + r * (1 / 120.0f + r * (1 / 720.0f + r / 5040.0f))))));
  return series * std::bit_cast<float>((std::bit_cast<std::uint32_t>(sum) + 127) << 23);
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

void apply_gelu(float* values, std::int64_t count) noexcept {
  constexpr float kLeast = -100, kMostExponent = 87;  // Gelu is 0 and v from +-87 / 2 on
  for (std::int64_t i = 0; i < count; ++i) {
    const float v = std::max(values[i], kLeast);
    const float u = kRootOfTwoByPi * (v + kCubic * v * v * v);
    values[i] = v / (1 + exponential(std::min(std::max(-2 * u, -kMostExponent), kMostExponent)));
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
