#include "tessera/partitioner/update.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/base/error.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/partitioner/bucket_checks.hpp"
#include "tessera/tests/partitioner/patterns.hpp"
#include "tessera/tests/support/trials.hpp"

namespace tessera::partitioner {
namespace {

using sparse::PatternChange;
using testing::HasSubstr;

constexpr std::uint64_t kUpdateSeed = 20261121;
constexpr std::uint64_t kPatternSeed = 5;  // another: the change is not to follow the pattern

std::unique_ptr<Executor> threads(int count) { return make_executor(ExecutorKind::Threads, count); }

TileGrid grid_of(const sparse::Csr<float>& matrix, Dims splits) {
  TileGrid grid;
  grid.size = {1, matrix.rows, matrix.cols, 24};
  grid.block = matrix.block;
  grid.splits = splits;
  grid.z_grain = 2;
  return grid;
}

// The new matrix has values of its own, so that a slot that was mixed up shows.
sparse::Csr<float> changed(const sparse::Csr<float>& m, const PatternChange& change) {
  auto result = sparse::with_change(m, change);
  for (std::size_t i = 0; i < result.values.size(); ++i) result.values[i] = float(i + 1);
  return result;
}

std::string fault_after(const Buckets& buckets, const sparse::Csr<float>& matrix) {
  const std::string fault = test::find_fault(buckets, matrix);
  if (!fault.empty()) return fault;
  if (buckets.stats.blocks != matrix.blocks()) return "blocks are not counted right";
  if (buckets.stats.exact() && buckets.stats.steps > 0 &&
      encode(matrix, buckets.grid).buckets->stats.steps < buckets.stats.steps)
    return "calls steps the fewest that are not";
  const auto values = to_bucket_order<float, float>(buckets, matrix.values);
  return decode(buckets, std::span<const float>(values)) == matrix ? "" : "decodes differently";
}

// 4 x 6 on two tiles along y. (0, 1) leaves, (2, 2) comes into an empty row of the first tile.
TEST(Update, RewritesOnlyTheBucketThatChanges) {
  const auto before = test::draw({"##....", ".#.#..", "...##.", ".....#"});
  TileGrid grid = grid_of(before, {1, 1, 2, 1});
  grid.size.z = 1, grid.z_grain = 1, grid.workers = 1;
  Buckets buckets = *encode(before, test::with_room(grid, before)).buckets;
  const auto second = test::forward_words(buckets, 1);
  const PatternChange change{{{0, 1}}, {{2, 2}}};
  const auto after = changed(before, change);
  const auto result = update(buckets, after, change, *threads(1));
  EXPECT_FALSE(result.afresh);
  EXPECT_EQ(result.changed, std::vector<std::int64_t>{0});
  EXPECT_EQ(test::forward_words(buckets, 0),
            test::numbers("1 0 0 3 23 1 2 14 1 | 0 1 0 2 5 | 0 1 0 | 1 1 4 | 2 1 8 | 0"));
  EXPECT_EQ(test::forward_words(buckets, 1), second);
  EXPECT_EQ(fault_after(buckets, after), "");
}

struct Case {
  BlockShape block;
  double slack = 0.3;
  bool forced = false, separate = false;
  std::int64_t word_bits = 16;
};

constexpr int kChanges = tessera::test::kIsSanitized ? 3 : 10;

// Some changes after each other, every one of them checked; returns how many were not afresh.
int survive_changes(const test::PatternKind& kind, Dims splits, const Case& c) {
  auto matrix = kind.make({24, 20}, c.block);
  TileGrid grid = grid_of(matrix, splits);
  grid.grad_w = true;
  grid.separate_grad_a = c.separate && matrix.block.is_element();
  grid.word_bits = c.word_bits;
  grid =
      c.forced ? test::with_room(grid, matrix) : test::with_uniform_capacity(grid, matrix, c.slack);
  auto encoded = encode(matrix, grid, {.force_spills = c.forced});
  if (!encoded.buckets) return 0;
  Buckets buckets = std::move(*encoded.buckets);
  Random random(kUpdateSeed);
  int in_place = 0;
  for (int step = 0; step < kChanges; ++step) {
    const auto change = test::random_change(matrix, step % 3 == 0 ? 0.002 : 0.02, random);
    const auto next = changed(matrix, change);
    const auto result = update(buckets, next, change, *threads(1 + step % 3));
    EXPECT_EQ(result.misfit.has_value(), encode(next, grid).misfit.has_value() && result.afresh);
    if (result.misfit) return in_place;
    EXPECT_EQ(fault_after(buckets, next), "") << kind.name << " step " << step;
    in_place += !result.afresh;
    matrix = next;
  }
  return in_place;
}

TEST(Update, DecodesToTheNewMatrixOverManyChanges) {
  int in_place = 0, spilled = 0;
  for (const auto& kind : test::pattern_kinds(kUpdateSeed))
    for (const Dims splits : {Dims{1, 1, 1, 1}, Dims{1, 3, 2, 2}, Dims{1, 2, 4, 3}})
      for (const BlockShape block : {BlockShape{1, 1}, BlockShape{2, 3}, BlockShape{4, 4}})
        for (const std::int64_t bits : {16, 32}) {
          in_place += survive_changes(kind, splits, {block, 0.6, false, bits == 32, bits});
          survive_changes(kind, splits, {block, 0.05, false, bits == 32, bits});
          if (splits.product() > 1)
            spilled += survive_changes(kind, splits, {block, 0, true, bits == 32, bits});
        }
  EXPECT_GT(in_place, 50 * kChanges);
  EXPECT_GT(spilled, 20 * kChanges);
}

TEST(Update, GivesTheSameBitsForAnyNumberOfThreads) {
  const auto before = test::pattern_kinds(kUpdateSeed)[0].make({64, 60}, {});
  const TileGrid grid = test::with_uniform_capacity(grid_of(before, {1, 4, 3, 2}), before, 0.5);
  Random random(kUpdateSeed);
  const auto change = test::random_change(before, 0.01, random);
  const auto after = changed(before, change);
  Buckets one = *encode(before, grid).buckets, four = one;
  update(one, after, change, *threads(1));
  EXPECT_FALSE(update(four, after, change, *threads(4)).afresh);
  EXPECT_EQ(one.meta, four.meta);
  EXPECT_EQ(one.source, four.source);
}

// A change in the rows from `begin` to `end` only.
PatternChange change_between(const sparse::Csr<float>& m, std::int32_t begin, std::int32_t end,
                             double share, Random& random) {
  PatternChange change = test::random_change(m, share, random);
  const auto outside = [&](const sparse::BlockAt& at) { return at.row < begin || at.row >= end; };
  std::erase_if(change.removed, outside);
  std::erase_if(change.added, outside);
  return change;
}

// Four x partitions of 64 rows and some 4900 elements: the second is cut again, in the fourth a few
// elements change in place, the third moves only in the source map, the first not at all.
TEST(Update, CutsPartsAgainWhereMostOfThemChanges) {
  const auto before = sparse::random_pattern(256, 256, {}, 0.3, kPatternSeed);
  const TileGrid grid = test::with_uniform_capacity(grid_of(before, {1, 4, 3, 2}), before, 0.5);
  Random random(kUpdateSeed);
  auto change = change_between(before, 64, 128, 0.02, random);
  change.removed.push_back({200, before.col[static_cast<std::size_t>(before.row_begin[200])]});
  ASSERT_NE(change.removed.size(), change.added.size());
  const auto after = changed(before, change);
  Buckets buckets = *encode(before, grid).buckets;
  const auto result = update(buckets, after, change, *threads(3));
  EXPECT_FALSE(result.afresh);
  ASSERT_EQ(result.changed.size(), 6u + 1u);
  for (std::int64_t i = 0; i < 6; ++i)
    EXPECT_EQ(result.changed[static_cast<std::size_t>(i)], 6 + i);
  EXPECT_GE(result.changed.back(), 18);
  EXPECT_EQ(fault_after(buckets, after), "");
  EXPECT_EQ(buckets.stats.records, 24);
  Buckets fresh = *encode(after, grid).buckets;
  for (std::int64_t b = 0; b < 12; ++b)
    EXPECT_EQ(test::forward_words(buckets, b), test::forward_words(fresh, b)) << b;
  update(buckets, before, {change.added, change.removed}, *threads(1));
  EXPECT_EQ(fault_after(buckets, before), "");
}

TEST(Update, OfPartsGivesTheSameBitsForAnyNumberOfThreads) {
  const auto before = sparse::random_pattern(256, 256, {}, 0.3, kPatternSeed);
  const TileGrid grid = test::with_uniform_capacity(grid_of(before, {1, 4, 3, 2}), before, 0.5);
  Random random(kUpdateSeed);
  const auto change = change_between(before, 100, 220, 0.02, random);
  const auto after = changed(before, change);
  Buckets one = *encode(before, grid).buckets, four = one;
  EXPECT_FALSE(update(one, after, change, *threads(1)).afresh);
  update(four, after, change, *threads(4));
  EXPECT_EQ(one.meta, four.meta);
  EXPECT_EQ(one.source, four.source);
  EXPECT_EQ(fault_after(one, after), "");
}

// More comes into the cut parts than their buckets hold, but others have room.
TEST(Update, EncodesAfreshWhereAPartThatIsCutAgainDoesNotFitAtHome) {
  const auto before = sparse::random_pattern(256, 256, {}, 0.3, kPatternSeed);
  TileGrid grid = test::with_uniform_capacity(grid_of(before, {1, 4, 3, 2}), before, 0.5);
  grid.blocks = encode(before, grid).buckets->stats.fullest_blocks * 112 / 100;
  Random random(kUpdateSeed);
  auto change = change_between(before, 64, 128, 0.15, random);
  change.removed.clear();
  ASSERT_GT(change.added.size(), 1000u);
  const auto after = changed(before, change);
  Buckets buckets = *encode(before, grid).buckets;
  EXPECT_TRUE(buckets.travel.stays_home());
  const auto result = update(buckets, after, change, *threads(1));
  EXPECT_TRUE(result.afresh);
  EXPECT_FALSE(result.misfit.has_value());
  EXPECT_EQ(fault_after(buckets, after), "");
}

TEST(Update, EncodesAfreshWhereABucketIsFull) {
  const auto before = test::draw({"##..", "##.."});
  TileGrid grid = test::with_room(grid_of(before, {1, 1, 2, 1}), before);
  grid.blocks = 4;
  Buckets buckets = *encode(before, grid).buckets;
  const PatternChange change{{}, {{0, 2}}};
  EXPECT_FALSE(update(buckets, changed(before, change), change, *threads(1)).afresh);
  buckets = *encode(before, grid).buckets;
  grid.blocks = 3;
  buckets = *encode(before, grid).buckets;
  const PatternChange many{{{1, 1}}, {{0, 2}, {0, 3}, {1, 2}}};
  const auto after = changed(before, many);
  EXPECT_EQ(update(buckets, after, many, *threads(1)).misfit.has_value(), false);
  EXPECT_EQ(fault_after(buckets, after), "");
}

TEST(Update, TakesTheLastBlockAwayAndBringsTheFirstOne) {
  const auto executor = threads(1);
  auto matrix = sparse::random_pattern(12, 12, {1, 1}, 0.0, kUpdateSeed);
  TileGrid grid = grid_of(matrix, {1, 2, 2, 1});
  grid.meta_words = 200, grid.blocks = 20;
  Buckets buckets = *encode(matrix, grid).buckets;
  const std::vector<PatternChange> changes = {{{}, {{7, 3}}}, {{{7, 3}}, {}}};
  for (const PatternChange& change : changes) {
    matrix = changed(matrix, change);
    ASSERT_FALSE(update(buckets, matrix, change, *executor).misfit);
    EXPECT_EQ(fault_after(buckets, matrix), "");
  }
}

TEST(Update, SaysWhenTheMatrixIsNotTheChangedOne) {
  const auto before = test::draw({"##..", ".#.#"});
  const Buckets good =
      *encode(before, test::with_room(grid_of(before, {1, 1, 1, 1}), before)).buckets;
  const auto text_of = [&](const sparse::Csr<float>& matrix, const PatternChange& change) {
    Buckets buckets = good;
    try {
      update(buckets, matrix, change, *threads(1));
      return std::string();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::InvalidArgument);
      return std::string(e.what());
    }
  };
  const PatternChange change{{{0, 1}}, {{1, 2}}};
  EXPECT_EQ(text_of(changed(before, change), change), "");
  EXPECT_THAT(text_of(before, change), HasSubstr("is removed but still in the new matrix"));
  EXPECT_THAT(text_of(before, {{{0, 3}}, {{1, 2}}}), HasSubstr("not in the new matrix"));
  EXPECT_THAT(text_of(before, {{{0, 3}}, {}}), HasSubstr("do not make the 4"));
  EXPECT_THAT(text_of(before, {{{2, 0}}, {{0, 0}}}), HasSubstr("lies outside"));
  EXPECT_THAT(text_of(before, {{{0, 3}}, {{0, 3}}}), HasSubstr("changes twice"));
}

TEST(RefillChanged, GivesWhatARefillGives) {
  const auto before = test::pattern_kinds(kUpdateSeed)[0].make({24, 20}, {2, 3});
  const TileGrid grid = test::with_uniform_capacity(grid_of(before, {1, 3, 2, 2}), before, 0.6);
  Buckets buckets = *encode(before, grid).buckets;
  auto values = to_bucket_order<float, float>(buckets, before.values);
  const PatternChange change{{{0, before.col[0]}}, {}};
  const auto after = sparse::with_change(before, change);
  const auto result = update(buckets, after, change, *threads(1));
  EXPECT_EQ(result.changed.size(), 1u);
  refill_changed<float, float>(buckets, after.values, values, result.changed);
  EXPECT_EQ(values, (to_bucket_order<float, float>(buckets, after.values)));
  std::vector<float> again(values.size(), -1.0f);
  refill<float, float>(buckets, after.values, again, *threads(3));
  EXPECT_EQ(again, values);
}

}  // namespace
}  // namespace tessera::partitioner
