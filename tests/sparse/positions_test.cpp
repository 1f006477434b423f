#include <gtest/gtest.h>

#include "tessera/base/error.hpp"
#include "tessera/sparse/checked.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/sparse/restrict.hpp"

// Tests of the positions that values of one matrix have in another.
namespace tessera::sparse {
namespace {

using Positions = std::vector<std::int64_t>;

Csr<float> numbered(Csr<float> matrix) {
  for (std::size_t i = 0; i < matrix.values.size(); ++i) matrix.values[i] = float(i + 1);
  return matrix;
}

TEST(TransposedPositions, OfAFullMatrixGoDownItsColumns) {
  const Csr<float> full = random_pattern(2, 3, {1, 1}, 1.0, 1);
  EXPECT_EQ(transpose_order(full), (Positions{0, 3, 1, 4, 2, 5}));
}

TEST(TransposedPositions, SayWhereTheValuesOfTheTransposeComeFrom) {
  for (const BlockShape block : {BlockShape{1, 1}, BlockShape{4, 4}, BlockShape{2, 3}}) {
    const Csr<float> matrix = numbered(random_pattern(24, 36, block, 0.3, 5));
    const Csr<float> turned = transpose(matrix);
    const Positions from = transpose_order(matrix), back = transpose_order(turned);
    ASSERT_EQ(from.size(), turned.values.size());
    for (std::size_t i = 0; i < from.size(); ++i) {
      EXPECT_EQ(turned.values[i], matrix.values[std::size_t(from[i])]);
      EXPECT_EQ(back[std::size_t(from[i])], std::int64_t(i));
    }
  }
}

TEST(PositionsOn, AreThoseOfTheSameElementInOtherBlocks) {
  const Csr<float> elements = numbered(random_pattern(16, 24, {1, 1}, 0.2, 7));
  const Csr<float> blocks = with_block(with_shape(elements, 32, 32), {8, 4});
  const Positions positions = positions_on(checked(blocks), checked(elements));
  ASSERT_EQ(positions.size(), elements.values.size());
  for (std::size_t i = 0; i < positions.size(); ++i)
    EXPECT_EQ(blocks.values[std::size_t(positions[i])], elements.values[i]);
}

TEST(PositionsOn, OfRunsAreThoseOfTheirFirstValues) {
  const Csr<float> large = numbered(random_pattern(32, 48, {16, 16}, 0.5, 7));
  const Csr<float> small = with_block(with_shape(with_block(large, {4, 8}), 48, 64), {4, 8});
  const Positions all = positions_on(checked(small), checked(large));
  for (const std::int64_t run : {2, 4, 8}) {
    const Positions firsts = positions_on(checked(small), checked(large), run);
    ASSERT_EQ(std::int64_t(firsts.size()) * run, std::int64_t(all.size()));
    for (std::size_t i = 0; i < all.size(); ++i)
      EXPECT_EQ(all[i], firsts[i / std::size_t(run)] + std::int64_t(i) % run);
  }
  EXPECT_THROW(positions_on(checked(small), checked(large), 16), Error);
}

TEST(PositionsOn, AreMinusOneWhereTheMatrixStoresNothingOrEnds) {
  const Csr<float> matrix{1, 2, {1, 1}, {0, 1}, {1}, {5}};
  const Csr<float> pattern{2, 3, {1, 1}, {0, 3, 4}, {0, 1, 2, 1}, {1, 1, 1, 1}};
  EXPECT_EQ(positions_on(checked(matrix), checked(pattern)), (Positions{-1, 0, -1, -1}));
}

}  // namespace
}  // namespace tessera::sparse
