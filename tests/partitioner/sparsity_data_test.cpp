#include "tessera/partitioner/sparsity_data.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/base/error.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/tests/partitioner/bucket_checks.hpp"
#include "tessera/tests/partitioner/patterns.hpp"

namespace tessera::partitioner {
namespace {

constexpr std::uint64_t kSeed = 20261121;

TileGrid grid_for(const sparse::Csr<float>& matrix, BlockShape block) {
  TileGrid grid;
  grid.size = {1, matrix.rows, matrix.cols, 12};
  grid.block = block;
  grid.splits = {1, 2, 3, 2};
  grid.z_grain = 2;
  return test::with_room(grid, sparse::with_block(matrix, block));
}

// User's blocks x the machine's: equal, cut, merged, and cut one way while merged the other. All
// blocks of a group are stored, so that nothing has to be filled in.
TEST(SparsityData, GivesEveryFormatBackFromEveryOther) {
  for (const auto& kind : test::pattern_kinds(kSeed)) {
    const auto coarse = kind.make({6, 6}, {8, 8});
    for (const BlockShape user : {BlockShape{1, 1}, BlockShape{2, 4}, BlockShape{8, 8}})
      for (const BlockShape machine : {BlockShape{1, 1}, BlockShape{4, 2}, BlockShape{8, 8}}) {
        const auto csr = sparse::with_block(coarse, user);
        const auto csc = sparse::to_csc(csr);
        const auto coo = sparse::to_coo(csr);
        const TileGrid grid = grid_for(csr, machine);
        for (const auto& result : {create_sparsity_data(csr, grid), create_sparsity_data(csc, grid),
                                   create_sparsity_data(coo, grid)}) {
          ASSERT_TRUE(result.data.has_value()) << kind.name;
          EXPECT_EQ(to_csr(*result.data), csr) << kind.name;
          EXPECT_EQ(to_csc(*result.data), csc) << kind.name;
          EXPECT_EQ(to_coo(*result.data), coo) << kind.name;
        }
      }
  }
}

TEST(SparsityData, FillsMergedBlocksWithStoredZeros) {
  const auto matrix = test::draw({"#...", ".#..", "....", "...#"});
  const auto result = create_sparsity_data(matrix, [&] {
    TileGrid grid = grid_for(matrix, {2, 2});
    grid.splits = {1, 2, 2, 1};
    return test::with_room(grid, sparse::with_block(matrix, {2, 2}));
  }());
  EXPECT_EQ(to_csr(*result.data).blocks(), 8);
  EXPECT_EQ(sparse::to_dense(to_csr(*result.data)), sparse::to_dense(matrix));
}

TEST(CreateWithNzRatio, StoresThatShareOfTheGridsBlocks) {
  TileGrid grid;
  grid.size = {1, 1024, 1024, 1};
  grid.block = {4, 4};
  grid.meta_words = 20'000, grid.blocks = 6554;
  const auto matrix = create_with_nz_ratio(grid, 0.1, kSeed);
  EXPECT_EQ(matrix.blocks(), 6554);
  EXPECT_EQ(matrix, create_with_nz_ratio(grid, 0.1, kSeed));
  EXPECT_NE(matrix, create_with_nz_ratio(grid, 0.1, kSeed + 1));
  grid.word_bits = 32;
  const auto result = create_sparsity_data(matrix, grid);
  ASSERT_TRUE(result.data.has_value());
  EXPECT_EQ(to_csr(*result.data), matrix);
  EXPECT_EQ(create_with_nz_ratio(grid, 0, kSeed).blocks(), 0);
  EXPECT_EQ(create_with_nz_ratio(grid, 1, kSeed).blocks(), 65536);
  EXPECT_THROW(create_with_nz_ratio(grid, 1.5, kSeed), Error);
  grid.workers = 0;
  EXPECT_THROW(create_with_nz_ratio(grid, 0.1, kSeed), Error);
}

TEST(SparsityData, SaysWhatDoesNotFit) {
  const auto matrix = test::draw({"####", "####"});
  TileGrid grid;
  grid.size = {1, 2, 4, 1};
  grid = test::with_room(grid, matrix);
  grid.blocks = 7;
  const auto result = create_sparsity_data(matrix, grid);
  EXPECT_FALSE(result.data.has_value());
  EXPECT_THAT(result.misfit->message, testing::HasSubstr("do not fit"));
  grid.block = {2, 3};
  EXPECT_THROW(create_sparsity_data(matrix, grid), Error);
}

}  // namespace
}  // namespace tessera::partitioner
