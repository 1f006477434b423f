#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tessera {

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

namespace internal {

// The bits of a float that is not negative have the order of the floats.
inline std::uint32_t bits_of(float score) { return std::bit_cast<std::uint32_t>(score + 0.0f); }

// Counts keys by their bits from `shift` on, eleven at most, in a table that stays in the nearest
// cache.
class KeyCounts {
 public:
  static constexpr int kBits = 11;

  explicit KeyCounts(int shift) : shift_(shift) {}
  std::uint32_t bin_of(std::uint32_t key) const { return key >> shift_ & kMask; }
  void add(std::uint32_t key) { ++counts_[bin_of(key)]; }
  std::uint32_t keys(std::uint32_t bin) const { return counts_[bin]; }

  // Returns the bin of the k-th smallest key, and takes the keys below the bin from k.
  std::uint32_t find(std::int64_t& k) const {
    std::uint32_t bin = 0;
    while (std::int64_t{counts_[bin]} < k) k -= counts_[bin++];
    return bin;
  }

 private:
  static constexpr std::uint32_t kMask = (1u << kBits) - 1;
  int shift_;
  std::array<std::uint32_t, kMask + 1> counts_{};
};

// Returns the border of the k smallest of `count` keys key(i), and takes the keys below it from k.
// Those in the bin of the border are listed without branches: what is not in it is overwritten.
template <class Key>
std::uint32_t border_key(std::int64_t count, std::int64_t& k, Key&& key) {
  constexpr int kShifts[] = {32 - KeyCounts::kBits, 32 - 2 * KeyCounts::kBits, 0};
  KeyCounts upper(kShifts[0]);
  for (std::int64_t i = 0; i < count; ++i) upper.add(key(i));
  std::uint32_t bin = upper.find(k), border = bin << kShifts[0];
  std::vector<std::uint32_t> left(upper.keys(bin) + 1);
  std::size_t listed = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    left[listed] = key(i);
    listed += upper.bin_of(key(i)) == bin;
  }
  left.pop_back();
  for (const int shift : {kShifts[1], kShifts[2]}) {
    KeyCounts counts(shift);
    for (const std::uint32_t one : left) counts.add(one);
    bin = counts.find(k);
    border |= bin << shift;
    std::erase_if(left, [&](std::uint32_t one) { return counts.bin_of(one) != bin; });
  }
  return border;
}

}  // namespace internal

template <class Score>
float border_of_largest(std::int64_t count, std::int64_t k, Score&& score) {
  return std::bit_cast<float>(~internal::border_key(
      count, k, [&](std::int64_t i) { return ~internal::bits_of(score(i)); }));
}

template <class Score>
std::vector<std::int64_t> smallest(std::int64_t count, std::int64_t k, Score&& score) {
  if (k == 0) return {};
  const auto key = [&](std::int64_t i) { return internal::bits_of(score(i)); };
  std::int64_t equal = k;
  const std::uint32_t border = internal::border_key(count, equal, key);
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

}  // namespace tessera
