#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tessera::train::internal {

// Returns the positions of the k smallest scores, ascending. Of equal scores the lower position is
// taken first. Scores are finite and not negative, k is in [0, scores]. Counts the scores by their
// upper and then by their lower bits, so the cost is O(scores) whatever their order.
std::vector<std::int64_t> smallest(std::span<const float> scores, std::int64_t k);

// Returns the positions of the k largest scores, ascending, by the same rules.
std::vector<std::int64_t> largest(std::span<const float> scores, std::int64_t k);

}  // namespace tessera::train::internal
