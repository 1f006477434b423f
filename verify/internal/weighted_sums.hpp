#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "tessera/base/matrix.hpp"
#include "tessera/verify/verify.hpp"

namespace tessera::verify::internal {

// Returns a whole number with a random sign and a random magnitude from 2^(bits-1) to 2^bits, the
// same for every call with these arguments (splitmix64).
inline double weight_of(std::int64_t place, int bits) {
  std::uint64_t x = (static_cast<std::uint64_t>(place) + 1) * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  x ^= x >> 31;
  const auto magnitude = static_cast<double>((x >> (64 - bits)) | (std::uint64_t{1} << (bits - 1)));
  return (x & 1u) != 0 ? magnitude : -magnitude;
}

// Returns the bits of weights with which a sum of `count` whole numbers, each up to 2^24 in
// magnitude, is exact in double: 24 + bits + log2(count) <= 53.
inline int weight_bits(std::int64_t count) {
  const int left = 53 - 24 - int(std::bit_width(static_cast<std::uint64_t>(count)));
  return left < 2 ? 2 : left > 20 ? 20 : left;
}

inline std::vector<double> weights_of(std::int64_t count, int bits) {
  std::vector<double> weights(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i)
    weights[static_cast<std::size_t>(i)] = weight_of(i, bits);
  return weights;
}

// Returns a value as a double. A Half is converted without branches, so that loops over many are
// vectorised; infinity and what is not a number become infinity, which agrees with nothing.
template <class T>
double number(T value) {
  if constexpr (std::is_same_v<T, Half>) {
    const std::uint32_t sign = std::uint32_t{value.bits & 0x8000u} << 16;
    const std::uint32_t rest = std::uint32_t{value.bits & 0x7fffu} << 13;
    const float magnitude = std::bit_cast<float>(rest) * 0x1p112f;
    const float finite = std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
    return double(magnitude < 65536.0f ? finite : HUGE_VALF);
  } else {
    return double(float(value));
  }
}

// Returns true for a whole number whose magnitude is below 2^31.
inline bool is_whole(double value) {
  return std::abs(value) < 0x1p31 && value == double(static_cast<std::int32_t>(value));
}

// Returns the largest magnitude, or infinity if an element is not a whole number below 2^31. A row
// is looked at without branches, so that compilers take several elements in one instruction; bits
// of positive floats are ordered as the floats are.
template <class T>
double largest_whole(MatrixView<const T> matrix) {
  constexpr float kWholeFrom = 0x1p23f;  // larger floats have no fraction
  std::int32_t largest = 0;
  for (std::int64_t r = 0; r < matrix.rows; ++r) {
    std::int32_t fractions = 0;
    for (std::int64_t c = 0; c < matrix.cols; ++c) {
      const float value = std::abs(static_cast<float>(number(matrix(r, c))));
      const float rounded = (value + kWholeFrom) - kWholeFrom;
      const bool is_whole = (value >= kWholeFrom) | (rounded == value);
      fractions |= !(is_whole & (value < 0x1p31f));
      largest = std::max(largest, std::bit_cast<std::int32_t>(value));
    }
    if (fractions != 0) return HUGE_VAL;
  }
  return double(std::bit_cast<float>(largest));
}

// Returns the magnitude up to which whole results are rounded neither in sums nor at the end.
inline double exact_up_to(const Rounding& rounding) {
  return 1 / std::max(precision_of(rounding.sums).unit, precision_of(rounding.result).unit);
}

// Returns the usual distance between a weighted sum of results and that of exact results, if the
// rounding errors of results are independent of each other and of the weights. `terms` is the
// number of products of a result, `products` the weighted squares of all of them, `results` those
// of the results. Each of the additions of a result rounds a partial sum that is about as large as
// the result or as all its products, and a rounding is off by 0.3 units on average.
inline double usual_distance(double terms, double products, double results,
                             const Rounding& rounding) {
  const Precision sums = precision_of(rounding.sums), result = precision_of(rounding.result);
  const double steps = terms + static_cast<double>(rounding.partials) + 2;
  const double of_sums = 0.09 * sums.unit * sums.unit * steps * (products + results);
  const double of_results =
      rounding.result == rounding.sums ? 0 : 0.36 * result.unit * result.unit * results;
  return std::sqrt(of_sums + of_results);
}

// A weighted sum is suspicious if it is off by more than this many usual distances. One in 15,000
// is if errors are spread evenly, and its results are then computed again.
constexpr double kSuspicious = 4;

}  // namespace tessera::verify::internal
