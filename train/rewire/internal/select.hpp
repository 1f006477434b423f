#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tessera::train::internal {

// The border of the best of some scores: all above it are taken, and `equal` of those that equal
// it.
struct Border {
  float score = 0;
  std::int64_t equal = 0;
};

// Returns the border of the k largest of `count` scores score(i), which are finite and not
// negative; k is in [1, count]. Counts the scores by their upper and then by their lower bits.
template <class Score>
Border border_of_largest(std::int64_t count, std::int64_t k, Score&& score);

// Returns the positions of the k smallest scores, ascending. Of equal scores the lower position is
// taken first. Scores are finite and not negative, k is in [0, scores]. Counts the scores by their
// upper and then by their lower bits, so the cost is O(scores) whatever their order.
std::vector<std::int64_t> smallest(std::span<const float> scores, std::int64_t k);

// Returns the positions of the k largest scores, ascending, by the same rules.
std::vector<std::int64_t> largest(std::span<const float> scores, std::int64_t k);

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
Border border_of_largest(std::int64_t count, std::int64_t k, Score&& score) {
  const std::uint32_t key =
      border_key(count, k, [&](std::int64_t i) { return ~bits_of(score(i)); });
  return {std::bit_cast<float>(~key), k};
}

}  // namespace tessera::train::internal
