#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tessera::train::internal {

// Returns the k-th largest of `count` scores score(i), which are finite and not negative; k is in
// [1, count]. Counts the scores by their upper and then by their lower bits.
template <class Score>
float border_of_largest(std::int64_t count, std::int64_t k, Score&& score);

// Returns the positions of the k smallest of `count` scores score(i), ascending. Of equal scores
// the lower position is taken first. Scores are finite and not negative, k is in [0, count]. Counts
// the scores by their upper and then by their lower bits, so the cost is O(count) whatever their
// order.
template <class Score>
std::vector<std::int64_t> smallest(std::int64_t count, std::int64_t k, Score&& score);

// The bits of a float that is not negative have the order of the floats.
inline std::uint32_t bits_of(float score) { return std::bit_cast<std::uint32_t>(score + 0.0f); }

// Returns the border of the k smallest of `count` keys key(i), and takes the keys below it from k.
template <class Key>
std::uint32_t border_key(std::int64_t count, std::int64_t& k, Key&& key) {
  constexpr int kHalfBits = 16;
  std::vector<std::uint32_t> counts(std::size_t{1} << kHalfBits);
  const auto bin_of = [&] {
    std::uint32_t bin = 0;
    while (std::int64_t{counts[bin]} < k) k -= counts[bin++];
    return bin;
  };
  for (std::int64_t i = 0; i < count; ++i) ++counts[key(i) >> kHalfBits];
  const std::uint32_t upper = bin_of();
  counts.assign(counts.size(), 0);
  for (std::int64_t i = 0; i < count; ++i)
    if (key(i) >> kHalfBits == upper) ++counts[key(i) & 0xffff];
  return upper << kHalfBits | bin_of();
}

template <class Score>
float border_of_largest(std::int64_t count, std::int64_t k, Score&& score) {
  return std::bit_cast<float>(
      ~border_key(count, k, [&](std::int64_t i) { return ~bits_of(score(i)); }));
}

template <class Score>
std::vector<std::int64_t> smallest(std::int64_t count, std::int64_t k, Score&& score) {
  if (k == 0) return {};
  const auto key = [&](std::int64_t i) { return bits_of(score(i)); };
  std::int64_t equal = k;
  const std::uint32_t border = border_key(count, equal, key);
  std::vector<std::int64_t> positions(std::size_t(k) + 1);
  std::size_t taken = 0;
  // No branches, which would often be predicted wrongly: what is not taken is overwritten.
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t bits = key(i);
    const bool is_equal = bits == border;
    positions[taken] = i;
    taken += int{bits < border} + int{is_equal && equal > 0};
    equal -= is_equal;
  }
  positions.pop_back();
  return positions;
}

}  // namespace tessera::train::internal
