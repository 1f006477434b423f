#include <gtest/gtest.h>

#include "tessera/partitioner/internal/stream_copy.hpp"
#include "tessera/partitioner/update.hpp"
#include "tessera/tests/partitioner/bucket_checks.hpp"
#include "tessera/tests/partitioner/patterns.hpp"

namespace tessera::partitioner {
namespace {

constexpr std::uint64_t kValuesSeed = 11;

// Slot by slot, as the source map is told in its header.
std::vector<float> slow_bucket_order(const Buckets& buckets, const std::vector<float>& values) {
  const auto area = static_cast<std::size_t>(buckets.grid.block.area());
  std::vector<float> result(buckets.source.size() * area, 0.0F);
  for (std::size_t slot = 0; slot < buckets.source.size(); ++slot)
    for (std::size_t i = 0; i < area && buckets.source[slot] >= 0; ++i)
      result[slot * area + i] = values[static_cast<std::size_t>(buckets.source[slot]) * area + i];
  return result;
}

// Buckets of so many slots in all, most of them padding.
Buckets buckets_with_slots(const sparse::Csr<float>& matrix, std::int64_t slots) {
  TileGrid grid;
  grid.size = {1, matrix.rows, matrix.cols, 8};
  grid.block = matrix.block;
  grid.splits = {1, 2, 3, 2};
  grid = test::with_room(grid, matrix);
  grid.blocks = std::max(grid.blocks, ceil_div(slots, grid.buckets()));
  return *encode(matrix, grid).buckets;
}

// One slot less than what goes past the caches, as much, more; and lists that begin between the
// grains that can go that way; blocks that are a whole number of grains, and not.
TEST(Refill, GivesEverySlotItsBlockHoweverMuchThereIs) {
  for (const BlockShape block : {BlockShape{16, 16}, BlockShape{2, 6}, BlockShape{5, 3}}) {
    const auto matrix = test::pattern_kinds(kValuesSeed)[0].make({12, 15}, block);
    const std::int64_t enough =
        internal::kStreamFrom / (block.area() * static_cast<std::int64_t>(sizeof(float)));
    for (const std::int64_t slots : {enough - 12, enough + 12, std::int64_t{0}})
      for (const std::size_t offset : {0, 1}) {
        const Buckets buckets = buckets_with_slots(matrix, slots);
        const auto expected = slow_bucket_order(buckets, matrix.values);
        std::vector<float> room(expected.size() + 1, -7.0F);
        const auto got = std::span(room).subspan(offset, expected.size());
        refill<float, float>(buckets, matrix.values, got, *make_executor(3));
        EXPECT_TRUE(std::equal(got.begin(), got.end(), expected.begin())) << slots << " " << offset;
        EXPECT_EQ(room[offset == 0 ? expected.size() : 0], -7.0F);
      }
  }
}

// Buckets of few slots are filled in one loop, larger ones in two.
TEST(Refill, GivesEverySlotItsElementWhateverTheBucketsHold) {
  const auto matrix = test::pattern_kinds(kValuesSeed)[0].make({120, 150}, {1, 1});
  for (const std::int64_t each : {0, 191, 192, 193, 500, 4000}) {
    const Buckets buckets = buckets_with_slots(matrix, 12 * each);
    EXPECT_EQ((to_bucket_order<float, float>(buckets, matrix.values)),
              slow_bucket_order(buckets, matrix.values))
        << each;
  }
}

TEST(RefillChanged, TouchesNoOtherBucketHoweverMuchThereIs) {
  const auto matrix = test::pattern_kinds(kValuesSeed)[0].make({12, 15}, {16, 16});
  const Buckets buckets = buckets_with_slots(matrix, 2 * internal::kStreamFrom / 1024);
  const auto expected = slow_bucket_order(buckets, matrix.values);
  std::vector<float> got(expected.size(), -7.0F);
  std::vector<std::int64_t> changed;
  for (std::int64_t b = 0; b < buckets.grid.buckets(); b += b == 2 ? 2 : 1) changed.push_back(b);
  refill_changed<float, float>(buckets, matrix.values, got, changed);
  for (std::int64_t b = 0; b < buckets.grid.buckets(); ++b) {
    const auto begin = b * buckets.values_per_bucket(), end = begin + buckets.values_per_bucket();
    if (b == 3)
      EXPECT_EQ(std::count(got.begin() + begin, got.begin() + end, -7.0F), end - begin);
    else
      EXPECT_TRUE(std::equal(got.begin() + begin, got.begin() + end, expected.begin() + begin))
          << b;
  }
}

}  // namespace
}  // namespace tessera::partitioner
