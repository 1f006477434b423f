#include "tessera/train/rewire/internal/select.hpp"

namespace tessera::train::internal {
namespace {

// Returns the positions of the k smallest keys key(score), which have 32 bits.
template <class Key>
std::vector<std::int64_t> smallest_keys(std::span<const float> scores, std::int64_t k, Key&& key) {
  std::vector<std::int64_t> positions;
  if (k == 0) return positions;
  positions.reserve(std::size_t(k));
  std::int64_t equal = k;
  const std::uint32_t border = border_key(
      std::ssize(scores), equal, [&](std::int64_t i) { return key(scores[std::size_t(i)]); });
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const std::uint32_t bits = key(scores[i]);
    if (bits > border || (bits == border && equal-- <= 0)) continue;
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
