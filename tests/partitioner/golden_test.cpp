#include <gtest/gtest.h>

#include "tessera/tests/partitioner/bucket_checks.hpp"
#include "tessera/tests/partitioner/patterns.hpp"

// Words of buckets as PopLibs 3.4's own encoder writes them. What we do differently on purpose: the
// overflow information has one y bound per x distance in place of a bitmap of used x distances.
namespace tessera::partitioner {
namespace {

using test::forward_words;
using test::numbers;

const sparse::Csr<float>& example() {
  static const auto matrix = [] {
    auto m = test::draw({"##....", ".#.#..", "..###.", ".....#"});
    for (float& v : m.values) v *= 10;
    return m;
  }();
  return matrix;
}

TileGrid example_grid(std::int64_t word_bits) {
  TileGrid grid;
  grid.word_bits = word_bits;
  grid.size = {1, 4, 6, 4};
  grid.z_grain = 2;
  grid.splits = {1, 2, 2, 1};
  return test::with_room(grid, example());
}

Buckets encode_example(const TileGrid& grid, bool forced = false) {
  auto result = encode(example(), grid, {forced});
  EXPECT_TRUE(result.buckets.has_value());
  return *result.buckets;
}

std::vector<float> values_of(const Buckets& buckets, std::int64_t bucket, std::int64_t count) {
  const auto all = to_bucket_order<float, float>(buckets, example().values);
  const auto first = all.begin() + bucket * buckets.values_per_bucket();
  return {first, first + count};
}

// The numbers are the same in words of 16 bits, as PopLibs has them, and of 32, as the host has.
class GoldenBuckets : public testing::TestWithParam<std::int64_t> {};
INSTANTIATE_TEST_SUITE_P(WordBits, GoldenBuckets, testing::Values(16, 32),
                         testing::PrintToStringParamName());

const std::string kE1[] = {
    "1 0 0 3 36 4 1 29 4 | 0 2 0 0 20 | 0 2 2 0 15 | 2 2 0 0 14 | 2 2 2 0 9 | 0 2 0 16 | 1 1 16 | "
    "0",
    "2 0 1 1 22 4 0 19 2 | 0 2 0 0 10 | 0 2 2 0 5 | 1 1 0 | 0",
    "3 1 0 1 22 4 0 19 2 | 0 2 0 0 10 | 0 2 2 0 5 | 0 1 32 | 0",
    "4 1 1 3 36 4 1 29 4 | 0 2 0 0 20 | 0 2 2 0 15 | 2 2 0 0 14 | 2 2 2 0 9 | 0 2 0 16 | 1 1 32 | "
    "0"};

TEST_P(GoldenBuckets, E1FloatForwardOnly) {
  const Buckets b = encode_example(example_grid(GetParam()));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(forward_words(b, i), numbers(kE1[i])) << "bucket " << i;
  EXPECT_EQ(values_of(b, 0, 4), (std::vector<float>{10, 20, 30, 0}));
  EXPECT_EQ(values_of(b, 1, 1), (std::vector<float>{40}));
  EXPECT_EQ(values_of(b, 2, 1), (std::vector<float>{50}));
  EXPECT_EQ(values_of(b, 3, 3), (std::vector<float>{60, 70, 80}));
  EXPECT_EQ(travel_words(b.travel, 1), (std::vector<std::uint32_t>{1, 1, 1, 1}));
}

TEST_P(GoldenBuckets, E2WithGradW) {
  TileGrid grid = example_grid(GetParam());
  grid.grad_w = true;
  const Buckets b = encode_example(grid);
  EXPECT_EQ(forward_words(b, 0),
            numbers("1 0 0 3 49 4 1 42 4 | 0 2 0 0 33 | 0 2 2 0 28 | 2 2 0 0 27 | 2 2 2 0 22 | 3 | "
                    "0 12 0 1 | 1 8 1 1 | 2 8 0 1 | 0 2 0 16 | 1 1 16 | 0"));
  EXPECT_EQ(forward_words(b, 1),
            numbers("2 0 1 1 27 4 0 24 2 | 0 2 0 0 15 | 0 2 2 0 10 | 1 | 0 4 0 1 | 1 1 0 | 0"));
}

TEST_P(GoldenBuckets, E3SeparateGradA) {
  TileGrid grid = example_grid(GetParam());
  grid.separate_grad_a = true;
  const Buckets b = encode_example(test::with_room(grid, example()));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(forward_words(b, i), numbers(kE1[i])) << "bucket " << i;
  EXPECT_EQ(test::grad_a_words(b, 0),
            numbers("1 0 0 3 39 4 1 29 4 | 0 2 0 0 20 | 0 2 2 0 15 | 0 2 0 0 16 | 0 2 2 0 11 | "
                    "1 2 4 0 8 16 | 0 1 0 0 | 0"));
  EXPECT_EQ(test::grad_a_words(b, 1),
            numbers("2 1 0 1 23 4 0 19 2 | 0 2 0 0 10 | 0 2 2 0 5 | 0 1 0 16 | 0"));
  EXPECT_EQ(test::grad_a_words(b, 2),
            numbers("3 0 1 1 23 4 0 19 2 | 0 2 0 0 10 | 0 2 2 0 5 | 2 1 0 0 | 0"));
  EXPECT_EQ(test::grad_a_words(b, 3),
            numbers("4 1 1 3 51 4 2 39 6 | 0 2 0 0 30 | 0 2 2 0 25 | 0 2 0 0 24 | 0 2 2 0 19 | "
                    "0 2 0 0 18 | 0 2 2 0 13 | 0 1 0 0 | 1 1 4 0 | 2 1 8 16 | 0"));
}

TEST_P(GoldenBuckets, E4Half) {
  TileGrid grid = example_grid(GetParam());
  grid.data_type = DataType::Half;
  grid.z_grain = 4;
  const Buckets b = encode_example(grid);
  const std::string golden[] = {
      "1 0 0 3 26 4 1 19 2 | 0 4 0 0 10 | 2 4 0 0 9 | 0 2 0 8 | 1 1 8 | 0",
      "2 0 1 1 17 4 0 14 1 | 0 4 0 0 5 | 1 1 0 | 0", "3 1 0 1 17 4 0 14 1 | 0 4 0 0 5 | 0 1 16 | 0",
      "4 1 1 3 26 4 1 19 2 | 0 4 0 0 10 | 2 4 0 0 9 | 0 2 0 8 | 1 1 16 | 0"};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(forward_words(b, i), numbers(golden[i])) << "bucket " << i;
}

TEST_P(GoldenBuckets, E5And6BlocksWithoutAndWithGradW) {
  const auto matrix = test::draw({"##", ".#"}, {4, 4});
  TileGrid grid;
  grid.word_bits = GetParam();
  grid.size = {1, 8, 8, 4};
  grid.block = {4, 4};
  grid = test::with_room(grid, matrix);
  EXPECT_EQ(forward_words(*encode(matrix, grid).buckets, 0),
            numbers("1 0 0 48 14 1 0 | 0 1 0 4 | 4 0 4 | 0"));
  grid.grad_w = true;
  grid = test::with_room(grid, matrix);
  EXPECT_EQ(forward_words(*encode(matrix, grid).buckets, 0),
            numbers("1 0 0 48 26 1 3 | 0 12 0 1 | 16 8 1 1 | 32 8 0 1 | 0 1 0 4 | 4 0 4 | 0"));
}

// PopLibs: 2 2 1 and a bitmap 3. Ours has the bound 2 at both x distances in the bitmap's place.
TEST_P(GoldenBuckets, E7ForcedSpillsMoveEveryPieceOneBucketUp) {
  const Buckets b = encode_example(example_grid(GetParam()), true);
  EXPECT_EQ(forward_words(b, 0), numbers(kE1[3]));
  EXPECT_EQ(forward_words(b, 1), numbers(kE1[0]));
  EXPECT_EQ(forward_words(b, 2), numbers(kE1[1]));
  EXPECT_EQ(forward_words(b, 3), numbers(kE1[2]));
  EXPECT_EQ(travel_words(b.travel, 1), (std::vector<std::uint32_t>{2, 2, 1, 2, 2}));
}

TEST_P(GoldenBuckets, E8TwoBucketsPerCell) {
  TileGrid grid = example_grid(GetParam());
  grid.splits.z = 2;
  const Buckets b = encode_example(grid);
  const std::string golden[] = {
      "1 0 0 1 17 2 0 14 1 | 0 2 0 0 5 | 0 1 0 | 0",
      "1 0 0 2 25 2 1 19 2 | 0 2 0 0 10 | 1 2 0 0 8 | 0 1 8 | 1 1 8 | 0",
      "2 0 1 1 17 2 0 14 1 | 0 2 0 0 5 | 1 1 0 | 0",
      "0",
      "3 1 0 1 17 2 0 14 1 | 0 2 0 0 5 | 0 1 16 | 0",
      "0",
      "4 1 1 1 17 2 0 14 1 | 0 2 0 0 5 | 0 1 0 | 0",
      "4 1 1 2 25 2 1 19 2 | 0 2 0 0 10 | 1 2 0 0 8 | 0 1 8 | 1 1 16 | 0"};
  for (int i = 0; i < 8; ++i) EXPECT_EQ(forward_words(b, i), numbers(golden[i])) << "bucket " << i;
  EXPECT_EQ(travel_words(b.travel, 2), (std::vector<std::uint32_t>{1, 1, 2, 1}));
}

}  // namespace
}  // namespace tessera::partitioner
