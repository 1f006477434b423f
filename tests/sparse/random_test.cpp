#include "tessera/sparse/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <set>

#include "tessera/base/random.hpp"
#include "tessera/sparse/check.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/tests/sparse/drawing.hpp"

namespace tessera::sparse {
namespace {

using test::raises;

TEST(RandomChoice, IsThePlacesOfARandomPattern) {
  for (const std::int64_t count : {0, 3, 400, 7000, 100'000}) {
    const auto chosen = random_choice(100'000, count, 5);
    const auto col = random_pattern(1, 100'000, {}, double(count) / 1e5, 5).col;
    EXPECT_EQ(chosen, std::vector<std::int64_t>(col.begin(), col.end()));
  }
  EXPECT_THROW(random_choice(10, 11, 1), Error);
  EXPECT_THROW(random_choice(10, -1, 1), Error);
}

TEST(RandomPattern, HasExactlyTheBlocksThatWereAskedFor) {
  for (const double density : {0.0, 0.001, 0.01, 1.0 / 16, 0.0626, 0.1, 0.5, 0.999, 1.0})
    for (const BlockShape block : {BlockShape{1, 1}, BlockShape{4, 4}, BlockShape{2, 3}}) {
      const auto m = random_pattern(96, 132, block, density, 3);
      SCOPED_TRACE(testing::Message() << m << ", density " << density);
      check(m);
      const double places = static_cast<double>(m.block_rows() * m.block_cols());
      EXPECT_EQ(m.blocks(), std::llround(density * places));
    }
  EXPECT_EQ(random_pattern(1024, 1024, {4, 4}, 0.1, 7).blocks(), 6554);
}

TEST(RandomPattern, IsTheSameForTheSameSeedAndAnotherForAnother) {
  for (const double density : {0.01, 0.4}) {
    const auto m = random_pattern(64, 64, {1, 1}, density, 5);
    EXPECT_EQ(m, random_pattern(64, 64, {1, 1}, density, 5));
    EXPECT_NE(m.col, random_pattern(64, 64, {1, 1}, density, 6).col);
  }
}

// Pinned: the pattern of a seed may not change, because reports name seeds.
TEST(RandomPattern, DrawsTheseBlocksFromSeedOne) {
  const auto walked = random_pattern(4, 6, {1, 1}, 0.25, 1);
  EXPECT_EQ(to_coo(walked).row, (std::vector<std::int32_t>{0, 0, 0, 1, 1, 3}));
  EXPECT_EQ(to_coo(walked).col, (std::vector<std::int32_t>{0, 1, 3, 1, 4, 4}));
  const auto drawn = random_pattern(100, 100, {1, 1}, 0.0004, 1);
  EXPECT_EQ(to_coo(drawn).row, (std::vector<std::int32_t>{2, 13, 13, 45}));
  EXPECT_EQ(to_coo(drawn).col, (std::vector<std::int32_t>{10, 38, 64, 12}));
}

// However sparse patterns are drawn, they are those that a list of different numbers gives.
TEST(RandomPattern, DrawsTheFirstDifferentPlaces) {
  constexpr std::int64_t kPlaces = 1 << 16;
  for (const std::int64_t count : {4095, 700, 64, 63, 5}) {  // below 1 in 16, 1 in 1024
    Random random(9);
    std::set<std::int64_t> places;
    while (std::ssize(places) < count) places.insert(random.below(kPlaces));
    const auto m = random_pattern(1, kPlaces, {1, 1}, double(count) / kPlaces, 9);
    EXPECT_TRUE(std::equal(m.col.begin(), m.col.end(), places.begin(), places.end())) << count;
    EXPECT_EQ(std::abs(m.values.back()), 1);
  }
}

// Every place is taken with the same chance: over n patterns of density d the count of one place
// has mean n d and deviation sqrt(n d (1 - d)); six deviations are exceeded by chance once in 5e8.
TEST(RandomPattern, PrefersNoPlace) {
  constexpr int kPatterns = 4000;
  for (const double density : {1.0 / 24, 0.25, 0.75}) {
    std::vector<int> taken(24);
    for (std::uint64_t seed = 0; seed < kPatterns; ++seed) {
      const Coo<float> m = to_coo(random_pattern(4, 6, {1, 1}, density, seed));
      for (std::int64_t i = 0; i < m.blocks(); ++i) ++taken[m.row[i] * 6 + m.col[i]];
    }
    const double bound = 6 * std::sqrt(kPatterns * density * (1 - density));
    for (std::size_t place = 0; place < taken.size(); ++place)
      EXPECT_NEAR(taken[place], kPatterns * density, bound)
          << "place " << place << ", density " << density;
  }
}

TEST(RandomPattern, FillsValuesWithBothSigns) {
  const auto m = random_pattern(64, 64, {4, 4}, 0.5, 9);
  const auto plus = std::count(m.values.begin(), m.values.end(), 1.0f);
  const auto minus = std::count(m.values.begin(), m.values.end(), -1.0f);
  EXPECT_EQ(plus + minus, 2048);
  EXPECT_NEAR(static_cast<double>(plus), 1024, 6 * std::sqrt(512.0));
}

TEST(RandomPattern, IsQuickForHugeAndVerySparseMatrices) {
  const auto m = random_pattern(1 << 20, std::int64_t{1} << 30, {1, 1}, 1e-11, 4);
  check(m);
  EXPECT_EQ(m.blocks(), 11259);
}

TEST(RandomPattern, RefusesWhatCannotBe) {
  const auto bad = [](const std::vector<std::string>& words, std::int64_t rows, std::int64_t cols,
                      BlockShape block, double density) {
    return raises(ErrorCode::InvalidArgument, words,
                  [=] { random_pattern(rows, cols, block, density, 1); });
  };
  EXPECT_TRUE(bad({"density 1.01", "0..1"}, 4, 4, {1, 1}, 1.01));
  EXPECT_TRUE(bad({"density -0.01"}, 4, 4, {1, 1}, -0.01));
  EXPECT_TRUE(bad({"density nan"}, 4, 4, {1, 1}, std::numeric_limits<double>::quiet_NaN()));
  EXPECT_TRUE(bad({"0 rows"}, 0, 4, {1, 1}, 0.5));
  EXPECT_TRUE(bad({"-1 columns"}, 4, -1, {1, 1}, 0.5));
  EXPECT_TRUE(bad({"4 columns", "multiple"}, 4, 4, {2, 3}, 0.5));
  EXPECT_TRUE(bad({"0 rows"}, 4, 4, {0, 1}, 0.5));
}

TEST(FillSigns, GivesAPatternValuesFromTheSeed) {
  Csr<float> pattern{4, 4, {2, 2}, {0, 1, 2}, {1, 0}, {}};
  fill_signs(pattern, 8);
  check(pattern);
  for (const float value : pattern.values) EXPECT_EQ(std::abs(value), 1.0f);
  Csr<float> again = pattern;
  fill_signs(again, 8);
  EXPECT_EQ(again, pattern);
  fill_signs(again, 9);
  EXPECT_NE(again, pattern);
}

}  // namespace
}  // namespace tessera::sparse
