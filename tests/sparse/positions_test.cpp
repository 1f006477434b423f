#include <gtest/gtest.h>

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

TEST(PositionsOn, AreMinusOneWhereTheMatrixStoresNothingOrEnds) {
  const Csr<float> matrix{1, 2, {1, 1}, {0, 1}, {1}, {5}};
  const Csr<float> pattern{2, 3, {1, 1}, {0, 3, 4}, {0, 1, 2, 1}, {1, 1, 1, 1}};
  EXPECT_EQ(positions_on(checked(matrix), checked(pattern)), (Positions{-1, 0, -1, -1}));
}

}  // namespace
}  // namespace tessera::sparse
