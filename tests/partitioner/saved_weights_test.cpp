#include "tessera/partitioner/saved_weights.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/base/error.hpp"
#include "tessera/tests/partitioner/bucket_checks.hpp"
#include "tessera/tests/partitioner/patterns.hpp"

namespace tessera::partitioner {
namespace {

// A matrix and its buckets, which have free slots. Forced: all blocks leave their own cells.
struct Sample {
  sparse::Csr<float> matrix;
  Buckets buckets;
};

Sample sample(BlockShape block, bool forced) {
  Sample result{.matrix = test::draw({"##..#.", ".#.##.", "#.###.", ".....#"}, block),
                .buckets = {}};
  TileGrid grid;
  grid.size = {1, result.matrix.rows, result.matrix.cols, 8};
  grid.block = block;
  grid.splits = {1, 2, 2, 1};
  grid.workers = 2;
  grid.separate_grad_a = block.is_element();
  result.buckets = *encode(result.matrix, test::with_room(grid, result.matrix), {forced}).buckets;
  return result;
}

Buckets restored_from(const Sample& sample, const SavedBuckets& saved) {
  return restored(sample.buckets.grid, saved, sample.matrix, *make_executor(2));
}

TEST(Restored, HasTheFieldsOfTheBucketsThatWereSaved) {
  for (const BlockShape block : {BlockShape{1, 1}, BlockShape{2, 3}})
    for (const bool forced : {false, true}) {
      const Sample given = sample(block, forced);
      ASSERT_THAT(given.buckets.source, testing::Contains(-1)) << "a slot without a block";
      const Buckets again = restored_from(given, saved(given.buckets));
      EXPECT_EQ(again.grid, given.buckets.grid);
      EXPECT_EQ(again.meta, given.buckets.meta);
      EXPECT_EQ(again.grad_a_meta, given.buckets.grad_a_meta);
      EXPECT_EQ(again.source, given.buckets.source);
      EXPECT_EQ(again.travel, given.buckets.travel);
      EXPECT_EQ(again.stats.blocks, given.buckets.stats.blocks);
      EXPECT_EQ(again.stats.moved_blocks, given.buckets.stats.moved_blocks);
    }
}

TEST(Restored, RefusesStatisticsThatTheWordsContradict) {
  for (const bool forced : {false, true}) {
    const Sample given = sample({1, 1}, forced);
    const SavedBuckets right = saved(given.buckets);
    ASSERT_EQ(right.stats.moved_blocks > 0, forced);
    SavedBuckets more = right, moved = right, none = right;
    ++more.stats.blocks;
    moved.stats.moved_blocks = right.stats.blocks + 1;
    none.stats.moved_blocks = forced ? 0 : 1;
    for (const SavedBuckets& wrong : {more, moved, none})
      EXPECT_THROW(restored_from(given, wrong), Error);
  }
}

TEST(Restored, RefusesAnotherPattern) {
  Sample given = sample({1, 1}, false);
  const SavedBuckets right = saved(given.buckets);
  given.matrix.col[0] = 2;  // the row has columns 0, 1 and 4
  EXPECT_THROW(restored_from(given, right), Error);
}

}  // namespace
}  // namespace tessera::partitioner
