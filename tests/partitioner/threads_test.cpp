#include <gtest/gtest.h>

#include "tessera/tests/partitioner/bucket_checks.hpp"
#include "tessera/tests/partitioner/patterns.hpp"

namespace tessera::partitioner {
namespace {

constexpr std::uint64_t kThreadsSeed = 20261121;

TileGrid grid_of(const sparse::Csr<float>& matrix, Dims splits) {
  TileGrid grid;
  grid.size = {1, matrix.rows, matrix.cols, 24};
  grid.block = matrix.block;
  grid.splits = splits;
  grid.z_grain = 2;
  grid.grad_w = true;
  grid.separate_grad_a = matrix.block.is_element();
  return grid;
}

void expect_same(const Buckets& a, const Buckets& b, const std::string& name) {
  EXPECT_EQ(a.grid, b.grid) << name;
  EXPECT_EQ(a.meta, b.meta) << name;
  EXPECT_EQ(a.grad_a_meta, b.grad_a_meta) << name;
  EXPECT_EQ(a.source, b.source) << name;
  EXPECT_EQ(a.travel, b.travel) << name;
  EXPECT_EQ(a.stats.records, b.stats.records) << name;
  EXPECT_EQ(a.stats.moved_blocks, b.stats.moved_blocks) << name;
  EXPECT_EQ(a.stats.fullest_words, b.stats.fullest_words) << name;
}

// Storage of another pattern, another width and another size lies in the way of every encode.
TEST(Threads, EncodeAndDecodeGiveTheSameBitsInUsedStorage) {
  Buckets used;
  for (const auto& kind : test::pattern_kinds(kThreadsSeed))
    for (const BlockShape block : {BlockShape{1, 1}, BlockShape{4, 4}})
      for (const std::int64_t bits : {16, 32})
        for (const double slack : {0.5, 0.05}) {
          const auto matrix = kind.make({40, 36}, block);
          TileGrid grid = grid_of(matrix, {1, 5, 4, 2});
          grid.word_bits = bits;
          grid = test::with_uniform_capacity(grid, matrix, slack);
          const auto alone = encode(matrix, grid);
          const auto executor = make_executor(ExecutorKind::Threads, 5);
          const auto misfit = encode_into(used, matrix, grid, *executor);
          ASSERT_EQ(misfit.has_value(), alone.misfit.has_value()) << kind.name;
          if (misfit) {
            EXPECT_EQ(misfit->message, alone.misfit->message);
            continue;
          }
          expect_same(used, *alone.buckets, kind.name);
          const auto values = to_bucket_order<float, float>(used, matrix.values);
          EXPECT_EQ(decode(used, std::span<const float>(values), *executor), matrix) << kind.name;
        }
}

TEST(Threads, LeaveBucketsAsTheyWereAfterAMisfit) {
  const auto matrix = test::draw({"###", "###"});
  const TileGrid grid = test::with_room(grid_of(matrix, {1, 1, 1, 1}), matrix);
  Buckets buckets = *encode(matrix, grid).buckets;
  const Buckets before = buckets;
  TileGrid small = grid;
  small.blocks = 3;
  const auto executor = make_executor(ExecutorKind::Threads, 2);
  EXPECT_TRUE(encode_into(buckets, matrix, small, *executor).has_value());
  expect_same(buckets, before, "after a misfit");
}

TEST(Threads, AllSayTheSameAboutAMatrixThatBreaksTheRules) {
  auto matrix = test::pattern_kinds(kThreadsSeed)[0].make({40, 36}, {});
  const TileGrid grid = test::with_room(grid_of(matrix, {1, 5, 4, 2}), matrix);
  std::swap(matrix.col[matrix.row_begin[7]], matrix.col[matrix.row_begin[7] + 1]);
  std::swap(matrix.col[matrix.row_begin[30]], matrix.col[matrix.row_begin[30] + 1]);
  const auto text_on = [&](int threads) {
    Buckets buckets;
    try {
      encode_into(buckets, matrix, grid, *make_executor(ExecutorKind::Threads, threads));
    } catch (const std::exception& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_NE(text_on(1).find("block row 7"), std::string::npos) << text_on(1);
  EXPECT_EQ(text_on(1), text_on(4));
}

}  // namespace
}  // namespace tessera::partitioner
