#include "tessera/sparse/change.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/sparse/check.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/random.hpp"

namespace tessera::sparse {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kSeed = 20261121;

// 3 x 4 elements: 1 . 2 . / . . . . / . 3 . .
Csr<float> small() { return {3, 4, {}, {0, 2, 2, 3}, {0, 2, 1}, {1, 2, 3}}; }

TEST(WithChange, RemovesAndAddsInAnyOrder) {
  const PatternChange change{{{2, 1}, {0, 0}}, {{2, 3}, {1, 2}, {0, 3}, {2, 0}}};
  const Csr<float> expected{3, 4, {}, {0, 2, 3, 5}, {2, 3, 2, 0, 3}, {2, 0, 0, 0, 0}};
  EXPECT_EQ(with_change(small(), change), expected);
  EXPECT_EQ(with_change(small(), {}), small());
}

TEST(WithChange, MovesWholeBlocks) {
  const Csr<float> m{2, 4, {2, 2}, {0, 1}, {1}, {1, 2, 3, 4}};
  EXPECT_EQ(with_change(m, {{}, {{0, 0}}}),
            (Csr<float>{2, 4, {2, 2}, {0, 2}, {0, 1}, {0, 0, 0, 0, 1, 2, 3, 4}}));
}

// Places with their values, changed one by one.
Csr<float> changed_by_hand(const Csr<float>& m, const PatternChange& change) {
  const auto area = std::size_t(m.block.area());
  std::map<BlockAt, std::vector<float>> blocks;
  for (std::int32_t row = 0; row < m.block_rows(); ++row)
    for (std::int64_t i = m.row_begin[std::size_t(row)]; i < m.row_begin[std::size_t(row) + 1]; ++i)
      blocks[{row, m.col[std::size_t(i)]}] = {m.values.begin() + i * m.block.area(),
                                              m.values.begin() + (i + 1) * m.block.area()};
  for (const BlockAt at : change.removed) blocks.erase(at);
  for (const BlockAt at : change.added) blocks[at] = std::vector<float>(area);
  Csr<float> result{m.rows, m.cols, m.block, {0}, {}, {}};
  result.row_begin.resize(m.row_begin.size());
  for (const auto& [at, values] : blocks) {
    ++result.row_begin[std::size_t(at.row) + 1];
    result.col.push_back(at.col);
    result.values.insert(result.values.end(), values.begin(), values.end());
  }
  std::partial_sum(result.row_begin.begin(), result.row_begin.end(), result.row_begin.begin());
  return result;
}

TEST(WithChange, IsThatOfChangingPlaceByPlace) {
  for (const BlockShape block : {BlockShape{1, 1}, BlockShape{2, 3}, BlockShape{6, 6}})
    for (const double before : {0.0, 0.05, 0.5, 1.0})
      for (const double after : {0.0, 0.04, 0.5, 0.6, 1.0})
        for (const std::uint64_t seed : {kSeed, kSeed + 1}) {
          auto m = random_pattern(36, 90, block, before, kSeed);
          std::iota(m.values.begin(), m.values.end(), 1.0f);
          const auto change = difference(m, random_pattern(36, 90, block, after, seed));
          const Csr<float> expected = changed_by_hand(m, change);
          EXPECT_EQ(with_change(m, change), expected);
          if (block.is_element()) {
            EXPECT_EQ(merge_change(m, change), expected);
          }
          const std::vector<PlacedBlock> placed = place_change(m, change);
          std::vector<float> carried(expected.values.size(), -1);
          carry_list<float>(placed, block.area(), m.values, carried);
          EXPECT_EQ(carried, expected.values);
          EXPECT_EQ(apply_change<float>(m, placed), expected);
          carried.assign(carried.size(), -1);
          const std::vector<std::int32_t> positions = positions_before(placed, m.blocks());
          ASSERT_EQ(std::ssize(positions), expected.blocks());
          carry_list<float>(positions, block.area(), m.values, carried);
          EXPECT_EQ(carried, expected.values);
          m.col.reserve(expected.col.size());
          m.values.reserve(expected.values.size());
          change_in_place(m, placed);
          EXPECT_EQ(m, expected);
        }
}

TEST(PlaceChange, NamesPositionsBeforeAndAfter) {
  EXPECT_THAT(place_change(small(), {{{2, 1}, {0, 0}}, {{2, 3}, {0, 3}, {0, 1}}}),
              testing::ElementsAre(PlacedBlock{0, 0, 0, -1}, PlacedBlock{0, 1, 1, 0},
                                   PlacedBlock{0, 3, 2, 2}, PlacedBlock{2, 1, 2, -1},
                                   PlacedBlock{2, 3, 3, 3}));
}

// A row of many changes is walked over and one of few is searched; both must find what is wrong.
TEST(PlaceChange, RefusesTheSamePlacesInLongAndInShortRows) {
  const auto m = random_pattern(4, 400, {}, 0.25, kSeed);
  const auto all = difference(m, random_pattern(4, 400, {}, 0.25, kSeed + 1));
  for (const std::size_t changes : {std::size_t{2}, all.removed.size()}) {
    PatternChange change{{all.removed.begin(), all.removed.begin() + std::ptrdiff_t(changes)},
                         {all.added.begin(), all.added.begin() + std::ptrdiff_t(changes)}};
    EXPECT_NO_THROW(place_change(m, change));
    const auto refused = [&](PatternChange bad) {
      try {
        place_change(m, bad);
        return std::string();
      } catch (const Error& e) {
        EXPECT_THROW(merge_change(m, bad), Error);
        return std::string(e.what());
      }
    };
    PatternChange bad = change;
    bad.removed.back() = change.added.back();
    std::sort(bad.removed.begin(), bad.removed.end());
    EXPECT_THAT(refused(bad), HasSubstr("is not stored"));
    bad = change;
    bad.added.front() = change.removed.front();
    std::sort(bad.added.begin(), bad.added.end());
    EXPECT_THAT(refused(bad), HasSubstr("already stored"));
    bad = change;
    bad.added.push_back(bad.added.front());
    EXPECT_THAT(refused(bad), HasSubstr("is given twice"));
    std::reverse(change.removed.begin(), change.removed.end());
    std::reverse(change.added.begin(), change.added.end());
    EXPECT_NO_THROW(place_change(m, change)) << "lists may be in any order";
    EXPECT_EQ(merge_change(m, change), with_change(m, change));
  }
}

TEST(WithChange, RefusesWhatCannotBeDone) {
  const auto text_of = [](const PatternChange& change) {
    try {
      with_change(small(), change);
      return std::string();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::InvalidArgument);
      return std::string(e.what());
    }
  };
  EXPECT_THAT(text_of({{{0, 1}}, {}}), HasSubstr("block row 0, block column 1 is not stored"));
  EXPECT_THAT(text_of({{{2, 3}}, {}}), HasSubstr("block row 2, block column 3 is not stored"));
  EXPECT_THAT(text_of({{}, {{0, 2}}}), HasSubstr("already stored"));
  EXPECT_THAT(text_of({{{0, 2}}, {{0, 2}}}), HasSubstr("already stored"));
  EXPECT_THAT(text_of({{}, {{1, 1}, {1, 1}}}), HasSubstr("is given twice"));
  EXPECT_THAT(text_of({{}, {{3, 0}}}), HasSubstr("is outside"));
  EXPECT_THAT(text_of({{{0, -1}}, {}}), HasSubstr("is outside"));
}

TEST(Difference, IsWhatMakesOnePatternOfTheOther) {
  for (const BlockShape block : {BlockShape{1, 1}, BlockShape{2, 3}}) {
    const auto before = random_pattern(24, 30, block, 0.3, kSeed);
    const auto after = random_pattern(24, 30, block, 0.2, kSeed + 1);
    const PatternChange change = difference(before, after);
    const auto made = with_change(before, change);
    EXPECT_EQ(made.row_begin, after.row_begin);
    EXPECT_EQ(made.col, after.col);
    EXPECT_EQ(difference(after, before), (PatternChange{change.added, change.removed}));
  }
  EXPECT_EQ(difference(small(), small()), PatternChange{});
  EXPECT_THROW(difference(small(), with_shape(small(), 3, 5)), Error);
}

TEST(HalvesOfCheck, AgreeWithTheWhole) {
  auto m = small();
  EXPECT_NO_THROW(check_all_but_columns(m));
  m.row_begin[1] = 4;
  EXPECT_THROW(check_all_but_columns(m), Error);
  m = small();
  m.values.pop_back();
  EXPECT_THROW(check_all_but_columns(m), Error);
  m = small();
  m.col[0] = 9;
  EXPECT_NO_THROW(check_all_but_columns(m));
  const auto legal = [](const std::vector<std::int32_t>& col) { return is_legal_row(col, 4); };
  EXPECT_TRUE(legal({}));
  EXPECT_TRUE(legal({0, 1, 3}));
  EXPECT_FALSE(legal({0, 4}));
  EXPECT_FALSE(legal({-1, 2}));
  EXPECT_FALSE(legal({1, 1}));
  EXPECT_FALSE(legal({2, 1, 3}));
}

}  // namespace
}  // namespace tessera::sparse
