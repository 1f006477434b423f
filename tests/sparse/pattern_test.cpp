#include "tessera/sparse/pattern.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tessera/base/error.hpp"
#include "tessera/sparse/check.hpp"
#include "tessera/sparse/random.hpp"

namespace tessera::sparse {
namespace {

constexpr std::uint64_t kPatternSeed = 11;
constexpr const char* kKinds[] = {"uniform", "banded", "rowwise", "power-law", "saw-tooth"};

std::int64_t blocks_of_row(const Csr<float>& m, std::int64_t r) {
  return m.row_begin[std::size_t(r) + 1] - m.row_begin[std::size_t(r)];
}

TEST(Pattern, EveryKindIsLegalAndHasExactlyTheBlocksAskedFor) {
  for (const char* kind : kKinds)
    for (const BlockShape block : {BlockShape{1, 1}, BlockShape{4, 2}})
      for (const double density : {0.0, 0.013, 0.3, 0.97, 1.0}) {
        SCOPED_TRACE(testing::Message() << kind << " " << block.rows << " " << density);
        const auto m = draw_pattern(52, 36, block, density, kPatternSeed, parse_pattern(kind));
        check(m);
        EXPECT_EQ(m.blocks(), std::llround(density * double(m.block_rows() * m.block_cols())));
        EXPECT_EQ(m, draw_pattern(52, 36, block, density, kPatternSeed, parse_pattern(kind)));
      }
}

TEST(Pattern, UniformIsRandomPattern) {
  EXPECT_EQ(draw_pattern(64, 48, {4, 4}, 0.2, kPatternSeed, {}),
            random_pattern(64, 48, {4, 4}, 0.2, kPatternSeed));
}

TEST(Pattern, TheCostOfADrawIsThatOfItsMatrix) {
  for (const char* kind : {"uniform", "banded", "2:4"}) {
    const PatternSpec spec = parse_pattern(kind);
    const DrawingCost cost = drawing_cost(48, 44, {2, 4}, 0.25, spec);
    const auto m = draw_pattern(48, 44, {2, 4}, 0.25, kPatternSeed, spec);
    EXPECT_EQ(cost.places, 24 * 11) << kind;
    EXPECT_EQ(cost.values, double(m.values.size())) << kind;
    EXPECT_GE(cost.bytes, double(4 * m.values.size() + 4 * m.col.size() + 8 * 24)) << kind;
  }
}

TEST(Pattern, RefusesDrawsAboveTheLimitsBeforeTheyStart) {
  const auto refused = [](std::int64_t rows, std::int64_t cols, BlockShape block, double density,
                          const char* kind) {
    try {
      draw_pattern(rows, cols, block, density, kPatternSeed, parse_pattern(kind));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::LimitExceeded);
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  EXPECT_NE(refused(1 << 20, 1 << 13, {1, 1}, 0, "banded").find("8.59e+09 places"),
            std::string::npos);
  EXPECT_NE(refused(1 << 20, 1 << 13, {1, 1}, 0, "uniform").find("places"), std::string::npos);
  EXPECT_NE(refused(5 * 4096, 4096, {4096, 4096}, 0, "1:100000").find("8.39e+07 values"),
            std::string::npos);
  EXPECT_NE(refused(1 << 30, 1, {1, 1}, 0, "rowwise").find("bytes"), std::string::npos);
  EXPECT_EQ(refused(64, 64, {1, 1}, 0.5, "rowwise"), "nothing");
}

TEST(Pattern, NOfMTakesNOfEveryGroupAndTheLastOneCutShort) {
  const auto m = draw_pattern(6, 11, {1, 1}, 1, kPatternSeed, parse_pattern("2:4"));
  for (std::int64_t r = 0; r < 6; ++r) {
    int group[3] = {};
    for (auto i = m.row_begin[std::size_t(r)]; i < m.row_begin[std::size_t(r) + 1]; ++i)
      ++group[m.col[std::size_t(i)] / 4];
    EXPECT_EQ(group[0], 2);
    EXPECT_EQ(group[1], 2);
    EXPECT_EQ(group[2], 2);  // of three
  }
  EXPECT_EQ(draw_pattern(2, 5, {1, 1}, 1, kPatternSeed, parse_pattern("2:4")).blocks(), 6);
}

TEST(Pattern, RowsFollowTheirKind) {
  const auto rowwise = draw_pattern(40, 100, {1, 1}, 0.123, kPatternSeed, parse_pattern("rowwise"));
  for (std::int64_t r = 0; r < 40; ++r)
    EXPECT_TRUE(blocks_of_row(rowwise, r) == 12 || blocks_of_row(rowwise, r) == 13);

  const auto teeth =
      draw_pattern(32, 1000, {1, 1}, 0.085, kPatternSeed, parse_pattern("saw-tooth"));
  EXPECT_EQ(blocks_of_row(teeth, 0), 10);
  EXPECT_EQ(blocks_of_row(teeth, 15), 160);
  EXPECT_EQ(blocks_of_row(teeth, 16), 10);

  const auto power = draw_pattern(64, 1000, {1, 1}, 0.02, kPatternSeed, parse_pattern("power-law"));
  std::vector<std::int64_t> rows;
  for (std::int64_t r = 0; r < 64; ++r) rows.push_back(blocks_of_row(power, r));
  EXPECT_FALSE(std::is_sorted(rows.rbegin(), rows.rend()));  // rows come in random order
  std::sort(rows.rbegin(), rows.rend());
  EXPECT_NEAR(double(rows[0]) / double(rows[1]), 2, 0.05);
  EXPECT_NEAR(double(rows[0]) / double(rows[9]), 10, 0.5);
}

TEST(Pattern, ABandLiesAlongTheDiagonal) {
  const auto m = draw_pattern(8, 16, {1, 1}, 0.25, kPatternSeed, parse_pattern("banded"));
  for (std::int64_t r = 0; r < 8; ++r) {
    const auto first = std::size_t(m.row_begin[std::size_t(r)]);
    EXPECT_EQ(m.col[first + 3] - m.col[first], 3);  // four side by side
    EXPECT_LE(std::abs(m.col[first] + 2 - (2 * r + 1)), r == 0 || r == 7 ? 1 : 0);
  }
}

// The example of the header, in elements and in blocks: the figures are counted in blocks.
TEST(Pattern, AWeightedAreaHasItsShareForBlocksToo) {
  for (const std::int64_t side : {1, 4, 16}) {
    const std::int64_t size = 64 * side;
    const PatternSpec spec{.area = WeightedArea{{0, 16 * side}, {0, 16 * side}, 4}};
    const auto m = draw_pattern(size, size, {side, side}, 0.1, kPatternSeed, spec);
    check(m);
    EXPECT_EQ(m.blocks(), 410);
    std::int64_t inside = 0;
    for (std::int64_t r = 0; r < 16; ++r)
      for (auto i = m.row_begin[std::size_t(r)]; i < m.row_begin[std::size_t(r) + 1]; ++i)
        inside += m.col[std::size_t(i)] < 16;
    EXPECT_EQ(inside, 102);
  }
}

TEST(Pattern, AnAreaTakesNoMoreThanItsPlacesNorThanThereIs) {
  const auto blocks_inside = [](double density, double weight) {
    const PatternSpec spec{.area = WeightedArea{{2, 6}, {4, 8}, weight}};
    const auto m = draw_pattern(16, 16, {1, 1}, density, kPatternSeed, spec);
    EXPECT_EQ(m.blocks(), std::llround(density * 256));
    std::int64_t inside = 0;
    for (std::int64_t r = 2; r < 6; ++r)
      for (auto i = m.row_begin[std::size_t(r)]; i < m.row_begin[std::size_t(r) + 1]; ++i)
        inside += 4 <= m.col[std::size_t(i)] && m.col[std::size_t(i)] < 8;
    return inside;
  };
  EXPECT_EQ(blocks_inside(0.5, 100), 16);
  EXPECT_EQ(blocks_inside(10.0 / 256, 1000), 10);
  EXPECT_EQ(blocks_inside(0.5, 0), 0);
  EXPECT_EQ(blocks_inside(1, 0), 16);  // nowhere else to go
}

TEST(Pattern, WhatCannotBeIsRefused) {
  for (const char* text : {"", "even", "2:", ":4", "0:4", "5:4", "2:4:8", "2 :4"})
    EXPECT_THROW(parse_pattern(text), Error) << text;
  const auto with_area = [](Range rows, Range cols, double weight) {
    return PatternSpec{.area = WeightedArea{rows, cols, weight}};
  };
  for (const PatternSpec& spec :
       {with_area({0, 9}, {0, 4}, 1), with_area({-1, 4}, {0, 4}, 1), with_area({4, 2}, {0, 4}, 1),
        with_area({0, 4}, {0, 4}, -1), with_area({0, 4}, {0, 4}, NAN),
        PatternSpec{.kind = PatternKind::Banded, .area = WeightedArea{{0, 1}, {0, 1}, 1}},
        PatternSpec{.kind = PatternKind::NOfM, .n = 3, .m = 2}})
    EXPECT_THROW(draw_pattern(8, 8, {1, 1}, 0.5, kPatternSeed, spec), Error);
  for (const double density : {-0.1, 1.5, double(NAN)})
    EXPECT_THROW(draw_pattern(8, 8, {1, 1}, density, kPatternSeed, parse_pattern("banded")), Error);
}

}  // namespace
}  // namespace tessera::sparse
