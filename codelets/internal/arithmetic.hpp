#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "tessera/base/half.hpp"

// The four methods of adding a product to a sum, the same for every kernel:
//   in float, sum float     fused: the exact product and the sum are rounded once, on every CPU
//   in Half, sum float      the product of two halves is exact in float; the sum is rounded to
//                           float
//   in Half, sum Half       the product is rounded to half, then the sum is rounded to half
//   in BFloat16, sum float  fused as floats are: a product has 16 bits, but may be below all
//                           floats; in block Fwd as the CPU's dot product of pairs does, see below
// With half sums the sum is computed in float first. Rounding 24 bits to 11 after that gives the
// same half as rounding the exact sum (24 >= 2 * 11 + 2).
namespace tessera::codelets::internal {

constexpr float to_float(float value) { return value; }
constexpr float to_float(BFloat16 value) { return float(value); }

// Returns float(value), for all 65,536 halves, without a branch: the compiler then turns inner
// loops into vector code, which the branches of float(Half) prevent. The product by 2^112 moves the
// exponent from bias 15 to bias 127 and makes subnormal halves normal; infinity and NaN are set by
// hand.
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

// Returns the column that block Fwd of BFloat16 adds as number i: of each pair (2i, 2i + 1) of a
// block the odd one first, in the order of the CPU's dot product. A last column without a partner
// is added alone.
constexpr std::int64_t paired_column(std::int64_t i, std::int64_t columns) {
  return (i ^ 1) < columns ? i ^ 1 : i;
}

// Adds a product as that instruction does, of numbers that BFloat16 has: those below the
// normal floats count as zeros, in operands and, after rounding, in results. Whether a sum rounds
// up to the smallest normal float is decided with the digits that a normal float has, which are
// those of the same sum 2^32 times as large.
template <class In>
float add_paired_product(float sum, In a, In b) {
  constexpr float kSmallest = 0x1p-126f, kScale = 0x1p32f;
  const auto normal = [](float v) { return std::abs(v) < kSmallest ? std::copysign(0.0f, v) : v; };
  const float x = normal(to_float(a)), y = normal(to_float(b)), z = normal(sum);
  const float result = std::fma(x, y, z);
  if (result == 0 || !(std::abs(result) <= kSmallest)) return result;
  const float scaled = std::fma(x * kScale, y, z * kScale);
  return std::abs(scaled) < kSmallest * kScale ? std::copysign(0.0f, result) : result;
}

// Computes out[z] += r * in[z] for z in [0, count).
template <class In, class Sum>
void add_scaled_row(Sum* out, In r, const In* in, std::int64_t count) {
  for (std::int64_t z = 0; z < count; ++z) out[z] = add_product(out[z], r, in[z]);
}

// Number of partial sums that are computed side by side if many products end in one number. With
// one running sum every addition would wait four cycles for the one before, and an order fixed here
// gives the same bits on every vector width.
inline constexpr std::int64_t kSumLanes = 16;

// Adds the lanes: the upper half to the lower half, until one is left.
template <class Sum>
Sum add_lanes(std::array<Sum, kSumLanes>& lanes) {
  for (std::size_t half = lanes.size() / 2; half > 0; half /= 2)
    for (std::size_t i = 0; i < half; ++i) lanes[i] = add(lanes[i], lanes[i + half]);
  return lanes[0];
}

// Returns the sum over i of values[i] * in(i), with term i in lane i % kSumLanes: a row of Fwd for
// one column of z, whose terms would otherwise wait for each other. A sum of -0 becomes +0, so a
// lane that is filled up with 0 * 0 has the bits of a lane that is not.
template <class Sum, class In, class At>
Sum one_column_sum(const In* values, std::int64_t count, At&& in) {
  std::array<Sum, kSumLanes> lanes{};
  for (std::int64_t i = 0; i < count; ++i) {
    Sum& lane = lanes[std::size_t(i % kSumLanes)];
    lane = add_product(lane, values[i], in(i));
  }
  return add(add_lanes(lanes), Sum());
}

// Returns the sum over z of a[z] * b[z], with column z in lane z % kSumLanes.
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
