#include "tessera/sparse/checked.hpp"

#include <gtest/gtest.h>

#include "tessera/base/error.hpp"
#include "tessera/sparse/change.hpp"
#include "tessera/sparse/check.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/internal/check_count.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/sparse/restrict.hpp"

// Matrices whose type says that they are legal.
namespace tessera::sparse {
namespace {

TEST(Checked, RefusesWhatCheckRefuses) {
  Csr<float> matrix = random_pattern(4, 6, {1, 1}, 0.5, 1);
  EXPECT_EQ(*checked(matrix), matrix);
  matrix.col.back() = 6;
  EXPECT_THROW(checked(matrix), Error);
}

TEST(Checked, TakesAMatrixOverWithoutACopy) {
  Csr<float> matrix = random_pattern(4, 6, {1, 1}, 0.5, 1);
  const float* const values = matrix.values.data();
  const CheckedCsr<float> taken = checked(std::move(matrix)), shared = taken;
  EXPECT_EQ(taken->values.data(), values);
  EXPECT_EQ(shared->values.data(), values);
}

TEST(Checked, WritesValuesOfItsOwnAlone) {
  CheckedCsr<float> mine = checked(random_pattern(4, 6, {1, 1}, 0.5, 1));
  const CheckedCsr<float> yours = mine;
  const float before = yours->values[0];
  mine.mutable_values()[0] = before + 1;
  EXPECT_EQ(yours->values[0], before);
  EXPECT_EQ(mine->values[0], before + 1);
  const float* const written = mine->values.data();
  EXPECT_EQ(mine.mutable_values().data(), written) << "nobody shares it any more";
}

TEST(Checked, ConvertsLikeAPlainMatrixAndChecksNothing) {
  for (const BlockShape block : {BlockShape{1, 1}, BlockShape{2, 4}}) {
    const Csr<float> plain = random_pattern(16, 24, block, 0.3, 3);
    const Csr<float> other = random_pattern(16, 24, block, 0.3, 4);
    const CheckedCsr<float> proven = checked(plain);
    const PatternChange change = difference(plain, other);
    const CheckedCsr<float> elements = checked(with_block(plain, {1, 1}));
    const std::int64_t before = internal::checks_done();
    const auto turned = transpose(proven), split = with_block(proven, {1, 1}),
               merged = with_block(proven, {4, 4}), grown = with_shape(proven, 32, 32),
               changed = with_change(proven, change), small = cropped(elements, 9, 10);
    const auto positions = transpose_order(proven);
    const auto stats = pattern_stats(proven);
    const auto back = difference(changed, proven);
    EXPECT_EQ(internal::checks_done(), before);
    EXPECT_EQ(*turned, transpose(plain));
    EXPECT_EQ(*split, with_block(plain, {1, 1}));
    EXPECT_EQ(*merged, with_block(plain, {4, 4}));
    EXPECT_EQ(*grown, with_shape(plain, 32, 32));
    EXPECT_EQ(*changed, with_change(plain, change));
    EXPECT_EQ(*small, cropped(*elements, 9, 10));
    EXPECT_EQ(positions, transpose_order(plain));
    EXPECT_EQ(stats.row_counts, pattern_stats(plain).row_counts);
    EXPECT_EQ(back, difference(*changed, plain));
    for (const auto& result : {turned, split, merged, grown, changed, small}) check(*result);
  }
}

TEST(Checked, SharesWhatAConversionLeavesAsItIs) {
  const CheckedCsr<float> matrix = checked(random_pattern(4, 6, {1, 1}, 0.5, 1));
  EXPECT_EQ(with_block(matrix, {1, 1})->values.data(), matrix->values.data());
  EXPECT_EQ(with_shape(matrix, 4, 6)->values.data(), matrix->values.data());
}

}  // namespace
}  // namespace tessera::sparse
