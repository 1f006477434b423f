#include "tessera/train/rewire/internal/select.hpp"

#include <bit>

namespace tessera::train::internal {
namespace {

// Floats that are not negative have the order of their bits.
std::uint32_t bits_of(float score) { return std::bit_cast<std::uint32_t>(score + 0.0f); }

constexpr int kHalfBits = 16;

// Returns the first bin at which the counts reach `wanted`, and takes what lies below from it.
std::uint32_t bin_of(const std::vector<std::int64_t>& counts, std::int64_t& wanted) {
  std::uint32_t bin = 0;
  while (counts[bin] < wanted) wanted -= counts[bin++];
  return bin;
}

// Returns the positions of the k smallest keys key(score), which have 32 bits.
template <class Key>
std::vector<std::int64_t> smallest_keys(std::span<const float> scores, std::int64_t k, Key&& key) {
  std::vector<std::int64_t> positions;
  if (k == 0) return positions;
  positions.reserve(std::size_t(k));
  std::vector<std::int64_t> counts(std::size_t(1) << kHalfBits);
  for (const float score : scores) ++counts[key(score) >> kHalfBits];
  std::int64_t equal = k;  // in the end: how many scores that equal the threshold are taken
  const std::uint32_t upper = bin_of(counts, equal);
  counts.assign(counts.size(), 0);
  for (const float score : scores)
    if (key(score) >> kHalfBits == upper) ++counts[key(score) & 0xffff];
  const std::uint32_t threshold = upper << kHalfBits | bin_of(counts, equal);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const std::uint32_t bits = key(scores[i]);
    if (bits > threshold || (bits == threshold && equal-- <= 0)) continue;
    positions.push_back(std::int64_t(i));
  }
  return positions;
}

}  // namespace

std::vector<std::int64_t> smallest(std::span<const float> scores, std::int64_t k) {
  return smallest_keys(scores, k, bits_of);
}

std::vector<std::int64_t> largest(std::span<const float> scores, std::int64_t k) {
  return smallest_keys(scores, k, [](float score) { return ~bits_of(score); });
}

}  // namespace tessera::train::internal
