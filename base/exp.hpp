#pragma once

#include <bit>
#include <cstdint>

namespace tessera {

// Returns exp(x) for x <= 0 with an error below 2^-22 of the result, and 0 below -87; a NaN stays
// one. It has no branch, so compilers make vectors of it: a call of std::exp took nine tenths of a
// softmax. Every operation is rounded by itself, so code with vectors can have the same bits.
inline float exp_of_negative(float x) {
  constexpr float kLog2E = 1.44269504f, kLn2High = 0.693145752f, kLn2Low = 1.42860677e-6f;
  const float above = x > -87.0f ? x : -87.0f, bounded = above < 0 ? above : 0.0f;
  const auto power = static_cast<std::int32_t>(bounded * kLog2E - 0.5f);
  const float n = static_cast<float>(power);
  const float r = (bounded - n * kLn2High) - n * kLn2Low;  // in -ln2 / 2 .. ln2 / 2
  const float tail = 1.0f / 6 + r * (1.0f / 24 + r * (1.0f / 120 + r * (1.0f / 720)));
  const float e = 1.0f + r * (1.0f + r * (0.5f + r * tail));
  const float scaled = e * std::bit_cast<float>((power + 127) << 23);
  return x >= -87.0f ? scaled : x == x ? 0.0f : x;
}

}  // namespace tessera
