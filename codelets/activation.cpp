#include "tessera/codelets/activation.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <type_traits>

#include "tessera/base/error.hpp"
#include "tessera/codelets/cast.hpp"

namespace tessera::codelets {
namespace {

constexpr float kCubic = 0.044715f;            // of the published approximation of GELU
constexpr float kRootOfTwoByPi = 0.79788456f;  // sqrt(2 / pi)

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

// Returns tanh(u) within 2e-7, without a branch or a call; it is 1 in floats from 9.02 on. NaN
// gives NaN.
float hyperbolic_tangent(float u) {
  constexpr float kMost = 10;
  return 1 - 2 / (1 + exponential(2 * std::min(std::max(u, -kMost), kMost)));
}

float gelu(float v) {
  return 0.5f * v * (1 + hyperbolic_tangent(kRootOfTwoByPi * (v + kCubic * v * v * v)));
}

float gelu_derivative(float v) {
  const float t = hyperbolic_tangent(kRootOfTwoByPi * (v + kCubic * v * v * v));
  const float inner = kRootOfTwoByPi * (1 + 3 * kCubic * v * v);
  return 0.5f * (1 + t) + 0.5f * v * (1 - t * t) * inner;
}

// Values are widened to floats and narrowed again in pieces of this many, so that each loop is one
// of vectors.
constexpr std::int64_t kPiece = 256;

// Returns float(value) without a branch, so that loops become vectors: the exponent is moved by a
// multiplication, which makes numbers of subnormal halves too; infinity and NaN get theirs.
float widened(Half value) {
  const std::uint32_t magnitude = std::uint32_t{value.bits & 0x7fffU} << 13;
  const std::uint32_t moved =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  constexpr std::uint32_t kInfinity = 0x7f800000, kBeyondHalf = 0x47800000;  // of 2^16
  const std::uint32_t special = moved >= kBeyondHalf ? kInfinity : 0;
  return std::bit_cast<float>(moved | special | std::uint32_t{value.bits & 0x8000U} << 16);
}
float widened(BFloat16 value) { return float(value); }

template <class T>
void widen(const T* from, std::int64_t count, float* to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = widened(from[i]);
}

// Calls visit(i, count) for pieces of a run.
template <class Visit>
void for_each_piece(std::int64_t begin, std::int64_t end, Visit&& visit) {
  for (std::int64_t i = begin; i < end; i += kPiece) visit(i, std::min(kPiece, end - i));
}

// Calls visit(i, end, row) for the part of each row: elements i .. end of the run, without padding.
template <class Visit>
void for_each_row(const ElementRun& run, Visit&& visit) {
  std::int64_t row = 0;
  for (std::int64_t e = run.begin; e < run.end; ++row) {
    const std::int64_t next = (e / run.columns + 1) * run.columns;
    const std::int64_t end = std::min(run.end, next - run.padding);
    visit(e - run.begin, std::max(e, end) - run.begin, row);
    e = std::min(run.end, next);
  }
}

template <class T, class Apply>
void apply_with_bias(const ElementRun& run, const float* bias, T* sums, T* results, Apply&& apply) {
  for_each_row(run, [&](std::int64_t i, std::int64_t end, std::int64_t row) {
    const float added = bias == nullptr ? 0 : bias[row];
    if constexpr (std::is_same_v<T, float>) {
      for (; i < end; ++i) {
        sums[i] += added;
        results[i] = apply(sums[i]);
      }
    } else {
      std::array<float, kPiece> piece;
      for_each_piece(i, end, [&](std::int64_t first, std::int64_t count) {
        widen(sums + first, count, piece.data());
        for (std::int64_t k = 0; k < count; ++k) piece[std::size_t(k)] += added;
        cast_floats(piece.data(), count, sums + first);
        widen(sums + first, count, piece.data());
        for (std::int64_t k = 0; k < count; ++k)
          piece[std::size_t(k)] = apply(piece[std::size_t(k)]);
        cast_floats(piece.data(), count, results + first);
      });
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
    if constexpr (std::is_same_v<T, float>) {
      for (std::int64_t i = 0; i < count; ++i) gradients[i] *= derivative(kept[i]);
    } else {
      std::array<float, kPiece> gradient, value;
      for_each_piece(0, count, [&](std::int64_t first, std::int64_t n) {
        widen(gradients + first, n, gradient.data());
        widen(kept + first, n, value.data());
        for (std::int64_t k = 0; k < n; ++k)
          gradient[std::size_t(k)] *= derivative(value[std::size_t(k)]);
        cast_floats(gradient.data(), n, gradients + first);
      });
    }
  };
  switch (rule.kind) {
    case Activation::None:
      return;
    case Activation::Relu:
      // Without a branch, so that the loop becomes one of vectors.
      return apply([cap = rule.cap](float v) {
        const float above = v > 0 ? 1.0f : 0.0f;
        return v < cap ? above : 0.0f;
      });
    case Activation::Gelu:
      return apply(gelu_derivative);
  }
}

template <class T>
void sum_rows(const ElementRun& run, const T* values, float* sums) noexcept {
  for_each_row(run, [&](std::int64_t i, std::int64_t end, std::int64_t row) {
    float sum = 0;
    if constexpr (std::is_same_v<T, float>) {
      for (; i < end; ++i) sum += values[i];
    } else {
      std::array<float, kPiece> piece;
      for_each_piece(i, end, [&](std::int64_t first, std::int64_t count) {
        widen(values + first, count, piece.data());
        for (std::int64_t k = 0; k < count; ++k) sum += piece[std::size_t(k)];
      });
    }
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
