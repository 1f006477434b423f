#include "tessera/partitioner/internal/longest_first.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "tessera/base/random.hpp"

namespace tessera::partitioner::internal {
namespace {

// A few counts are packed into one word, others have a list.
TEST(LongestFirst, AgreesWithAStableSort) {
  Random random(5);
  LongestFirst longest_first;
  for (int i = 0; i < 400; ++i) {
    std::vector<std::int32_t> counts(static_cast<std::size_t>(random.below(80)));
    const std::int64_t most = 1 + random.below(i % 2 == 0 ? 12 : 300);
    for (std::int32_t& count : counts) count = static_cast<std::int32_t>(random.below(most));
    std::vector<std::size_t> expected(counts.size()), got(counts.size());
    std::iota(expected.begin(), expected.end(), 0);
    std::ranges::stable_sort(expected,
                             [&](std::size_t a, std::size_t b) { return counts[a] > counts[b]; });
    const std::int32_t largest = counts.empty() ? 0 : std::ranges::max(counts);
    longest_first.place(
        counts.size(), largest, [&](std::size_t item) { return counts[item]; },
        [&](std::size_t item, std::size_t to) { got.at(to) = item; });
    EXPECT_EQ(got, expected);
  }
}

}  // namespace
}  // namespace tessera::partitioner::internal
