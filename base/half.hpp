#pragma once

#include <bit>
#include <cstdint>

namespace tessera {

// IEEE 754 binary16 as a storage type: 1 sign, 5 exponent and 10 fraction bits. The type offers
// conversions only; arithmetic is done in float. float -> Half rounds to nearest, ties to even;
// overflow gives infinity; NaN stays NaN (quiet, top fraction bits kept); subnormals are exact.
struct Half {
  std::uint16_t bits = 0;

  constexpr Half() = default;
  static constexpr Half from_bits(std::uint16_t b) {
    Half h;
    h.bits = b;
    return h;
  }
  constexpr explicit Half(float value);
  constexpr explicit operator float() const;
  friend constexpr bool operator==(Half a, Half b) { return float(a) == float(b); }
};

// bfloat16 as a storage type: the upper 16 bits of a float. float -> BFloat16 rounds to nearest,
// ties to even; NaN stays NaN.
struct BFloat16 {
  std::uint16_t bits = 0;

  constexpr BFloat16() = default;
  static constexpr BFloat16 from_bits(std::uint16_t b) {
    BFloat16 h;
    h.bits = b;
    return h;
  }
  constexpr explicit BFloat16(float value);
  constexpr explicit operator float() const {
    return std::bit_cast<float>(std::uint32_t{bits} << 16);
  }
  friend constexpr bool operator==(BFloat16 a, BFloat16 b) { return float(a) == float(b); }
};

namespace internal {

// Returns `fraction` shifted right by `shift` in 1..31, rounded to nearest, ties to even.
constexpr std::uint32_t shift_round_even(std::uint32_t fraction, int shift) {
  const std::uint32_t kept = fraction >> shift, lost = fraction & ((1u << shift) - 1);
  const std::uint32_t half_way = 1u << (shift - 1);
  return kept + (lost > half_way || (lost == half_way && (kept & 1u)));
}

constexpr std::uint16_t half_bits(float value) {
  const auto f = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((f >> 16) & 0x8000u);
  const std::uint32_t magnitude = f & 0x7fffffffu;
  const auto with_sign = [sign](std::uint32_t m) { return static_cast<std::uint16_t>(sign | m); };
  // Most values, 2^-14 and above, are normal in both types: the fraction is rounded and the
  // exponent gets another bias. A carry out of the fraction moves into the exponent, up to
  // infinity, which is the correct rounding.
  constexpr std::uint32_t kLeast = 0x38800000u, kInfinite = 0x47800000u;
  if (magnitude >= kLeast && magnitude < kInfinite)
    return with_sign((magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13);
  if (magnitude > 0x7f800000u) return with_sign(0x7e00u | ((magnitude >> 13) & 0x3ffu));
  if (magnitude >= kInfinite) return with_sign(0x7c00u);
  const int exponent = static_cast<int>(magnitude >> 23) - 127;
  if (exponent < -25) return sign;  // below 2^-25, half of the smallest subnormal: zero
  const std::uint32_t fraction = (magnitude & 0x7fffffu) | 0x800000u;
  return with_sign(shift_round_even(fraction, 13 + (-14 - exponent)));
}

constexpr float half_value(std::uint16_t bits) {
  const std::uint32_t sign = std::uint32_t{bits & 0x8000u} << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fu;
  std::uint32_t fraction = bits & 0x3ffu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (fraction << 13));
  if (exponent != 0)
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
  if (fraction == 0) return std::bit_cast<float>(sign);
  const int shift = std::countl_zero(fraction) - 21;  // moves the leading one to bit 10
  fraction = (fraction << shift) & 0x3ffu;
  return std::bit_cast<float>(sign | (static_cast<std::uint32_t>(113 - shift) << 23) |
                              (fraction << 13));
}

constexpr std::uint16_t bfloat16_bits(float value) {
  const auto f = std::bit_cast<std::uint32_t>(value);
  if ((f & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((f >> 16) | 0x40u);
  return static_cast<std::uint16_t>((f + 0x7fffu + ((f >> 16) & 1u)) >> 16);
}

}  // namespace internal

constexpr Half::Half(float value) : bits(internal::half_bits(value)) {}
constexpr Half::operator float() const { return internal::half_value(bits); }
constexpr BFloat16::BFloat16(float value) : bits(internal::bfloat16_bits(value)) {}

}  // namespace tessera
