#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "tessera/base/half.hpp"

// The four ways a product is added to a sum, the same for every kernel:
//   in float, sum float   fused: the exact product and the sum rounded once, on every computer
//   in Half,  sum float   the product of two halves is exact in float; the sum is rounded to float
//   in Half,  sum Half    product rounded to half, then the sum rounded to half
//   in BFloat16, sum float  fused as floats are: a product has 16 bits, but may be below all
//   floats;
//                           in block Fwd as the CPU's dot product of pairs does, see below
// With half sums the sum is taken in float first; rounding 24 bits to 11 after that gives the same
// half as rounding the exact sum (24 >= 2 * 11 + 2).
namespace tessera::codelets::internal {

constexpr float to_float(float value) { return value; }
constexpr float to_float(BFloat16 value) { return float(value); }

// Equal to float(value) for all 65,536 halves, without a branch: inner loops become vector code,
// which they do not around the branches of float(Half). The product by 2^112 moves the exponent
// from bias 15 to bias 127 and makes subnormal halves normal; infinity and NaN get theirs by hand.
constexpr float to_float(Half value) {
  const std::uint32_t magnitude = std::uint32_t{value.bits & 0x7fffu} << 13;
  const auto finite = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  const std::uint32_t special = magnitude >= 0x0f800000u ? 0x7f800000u : 0u;
  const std::uint32_t sign = std::uint32_t{value.bits & 0x8000u} << 16;
  return std::bit_cast<float>(sign | finite | special);
}

template <class Sum>
constexpr Sum add(Sum a, Sum b) {
  return static_cast<Sum>(to_float(a) + to_float(b));
}

template <class Sum, class In>
Sum add_product(Sum sum, In a, In b) {
  if constexpr (std::is_same_v<In, Half>)
    return add(sum, static_cast<Sum>(to_float(a) * to_float(b)));
  else
    return std::fma(to_float(a), to_float(b), sum);
}

// Block Fwd of BFloat16 adds the two columns of each pair (2i, 2i + 1) of a block in the order of
// the CPU's dot product: the odd one first. A last column without a partner stands alone.
constexpr std::int64_t paired_column(std::int64_t i, std::int64_t columns) {
  return (i ^ 1) < columns ? i ^ 1 : i;
}

// And as that instruction does, it takes numbers below the normal floats for zeros, in operands and
// results, after rounding: whether a sum rounds up to the smallest normal float is decided with the
// digits that a normal float has, which are those of the same sum 2^32 times as large.
inline float add_paired_product(float sum, BFloat16 a, BFloat16 b) {
  constexpr float kSmallest = 0x1p-126f, kScale = 0x1p32f;
  const auto normal = [](float v) { return std::abs(v) < kSmallest ? std::copysign(0.0f, v) : v; };
  const float x = normal(float(a)), y = normal(float(b)), z = normal(sum);
  const float result = std::fma(x, y, z);
  if (result == 0 || !(std::abs(result) <= kSmallest)) return result;
  const float scaled = std::fma(x * kScale, y, z * kScale);
  return std::abs(scaled) < kSmallest * kScale ? std::copysign(0.0f, result) : result;
}

// out[z] += r * in[z] for z in [0, count).
template <class In, class Sum>
void add_scaled_row(Sum* out, In r, const In* in, std::int64_t count) {
  for (std::int64_t z = 0; z < count; ++z) out[z] = add_product(out[z], r, in[z]);
}

// Sums that run side by side where many products end in one number. One running sum would wait
// four cycles for every addition, and an order fixed here gives the same bits on every vector
// width.
inline constexpr std::int64_t kSumLanes = 16;

// The lanes added in pairs: the upper half to the lower, until one is left.
template <class Sum>
Sum add_lanes(std::array<Sum, kSumLanes>& lanes) {
  for (std::size_t half = lanes.size() / 2; half > 0; half /= 2)
    for (std::size_t i = 0; i < half; ++i) lanes[i] = add(lanes[i], lanes[i + half]);
  return lanes[0];
}

// sum over i of values[i] * in(i), term i in lane i % kSumLanes: a row of Fwd for one column of z,
// whose terms would else wait for each other. A sum of -0 is +0, so that a lane which is filled up
// with 0 * 0 has the bits of one that is not.
template <class Sum, class In, class At>
Sum one_column_sum(const In* values, std::int64_t count, At&& in) {
  std::array<Sum, kSumLanes> lanes{};
  for (std::int64_t i = 0; i < count; ++i) {
    Sum& lane = lanes[std::size_t(i % kSumLanes)];
    lane = add_product(lane, values[i], in(i));
  }
  return add(add_lanes(lanes), Sum());
}

// sum over z of a[z] * b[z]: column z goes to lane z % kSumLanes.
template <class Sum, class In>
Sum dot(const In* a, const In* b, std::int64_t count) {
  std::array<Sum, kSumLanes> lanes{};
  std::int64_t z = 0;
  for (; z + kSumLanes <= count; z += kSumLanes)
    for (std::int64_t i = 0; i < kSumLanes; ++i)
      lanes[std::size_t(i)] = add_product(lanes[std::size_t(i)], a[z + i], b[z + i]);
  for (std::int64_t i = 0; z + i < count; ++i)
    lanes[std::size_t(i)] = add_product(lanes[std::size_t(i)], a[z + i], b[z + i]);
  return add(add_lanes(lanes), Sum());
}

}  // namespace tessera::codelets::internal
