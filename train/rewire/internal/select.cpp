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

}  // namespace

std::vector<std::int64_t> smallest(std::span<const float> scores, std::int64_t k) {
  std::vector<std::int64_t> positions;
  if (k == 0) return positions;
  positions.reserve(std::size_t(k));
  std::vector<std::int64_t> counts(std::size_t(1) << kHalfBits);
  for (const float score : scores) ++counts[bits_of(score) >> kHalfBits];
  std::int64_t equal = k;  // in the end: how many scores that equal the threshold are taken
  const std::uint32_t upper = bin_of(counts, equal);
  counts.assign(counts.size(), 0);
  for (const float score : scores)
    if (bits_of(score) >> kHalfBits == upper) ++counts[bits_of(score) & 0xffff];
  const std::uint32_t threshold = upper << kHalfBits | bin_of(counts, equal);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const std::uint32_t bits = bits_of(scores[i]);
    if (bits > threshold || (bits == threshold && equal-- <= 0)) continue;
    positions.push_back(std::int64_t(i));
  }
  return positions;
}

}  // namespace tessera::train::internal
