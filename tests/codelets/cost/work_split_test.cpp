#include "tessera/codelets/work_split.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/random.hpp"

namespace tessera::codelets {

// GoogleTest prints shares with this.
void PrintTo(const WorkShare& share, std::ostream* out) {
  *out << "[" << share.rows.begin << "," << share.rows.end << ")x[" << share.cols.begin << ","
       << share.cols.end << ")";
}

namespace {

using testing::ElementsAre;

std::vector<Range> columns(const std::vector<WorkShare>& shares) {
  std::vector<Range> ranges;
  for (const WorkShare& share : shares) ranges.push_back(share.cols);
  return ranges;
}

std::vector<std::int64_t> sizes(const std::vector<Range>& ranges) {
  std::vector<std::int64_t> result;
  for (const Range r : ranges) result.push_back(r.size());
  return result;
}

TEST(SplitBetweenWorkers, CutsOneLineOfThirteenInTheKnownOrder) {
  EXPECT_THAT(
      columns(split_between_workers(1, 13, 6)),
      ElementsAre(Range{2, 3}, Range{3, 6}, Range{6, 9}, Range{11, 13}, Range{9, 11}, Range{0, 2}));
}

TEST(SplitBetweenWorkers, CutsOneLineOfSixteenIntoThreesAndTwos) {
  EXPECT_THAT(sizes(columns(split_between_workers(1, 16, 6))),
              testing::UnorderedElementsAre(3, 3, 3, 3, 2, 2));
}

TEST(SplitBetweenWorkers, CutsTenByFourIntoStripsAndSquares) {
  std::vector<std::pair<std::int64_t, std::int64_t>> shapes;
  for (const WorkShare& s : split_between_workers(10, 4, 6))
    shapes.emplace_back(s.rows.size(), s.cols.size());
  using Shape = std::pair<std::int64_t, std::int64_t>;
  EXPECT_THAT(shapes, testing::UnorderedElementsAre(Shape{2, 4}, Shape{2, 4}, Shape{2, 4},
                                                    Shape{2, 4}, Shape{2, 2}, Shape{2, 2}));
}

TEST(SplitBetweenWorkers, GivesOneOfSixWorkersTwoOfSevenRows) {
  std::vector<std::int64_t> rows;
  for (const WorkShare& s : split_between_workers(7, 1, 6)) rows.push_back(s.rows.size());
  EXPECT_THAT(rows, testing::UnorderedElementsAre(2, 1, 1, 1, 1, 1));
}

TEST(SplitBetweenWorkers, CutsTheFirstOfFiveStripsOfASquareAtColumnThree) {
  const auto shares = split_between_workers(5, 5, 6);
  ASSERT_EQ(shares.size(), 6u);
  EXPECT_EQ(shares.front(), (WorkShare{{0, 1}, {3, 5}}));
  EXPECT_EQ(shares.back(), (WorkShare{{0, 1}, {0, 3}}));
}

TEST(SplitBetweenWorkers, FollowsRowWeightsOnWholeRows) {
  const std::vector<std::int64_t> weights = {9, 7, 5, 5, 4, 4, 3, 2, 2, 1, 1, 1, 1, 1};
  const Range all{0, 3};
  EXPECT_THAT(split_between_workers(14, 3, 6, weights),
              ElementsAre(WorkShare{{0, 2}, all}, WorkShare{{2, 3}, all}, WorkShare{{3, 5}, all},
                          WorkShare{{5, 8}, all}, WorkShare{{8, 14}, all}));
}

TEST(SplitBetweenWorkers, IgnoresWeightsOfTwelveRowsAndFewer) {
  const std::vector<std::int64_t> weights(12, 100);
  EXPECT_EQ(split_between_workers(12, 3, 6, weights), split_between_workers(12, 3, 6));
}

TEST(SplitBySums, AgreesWithTheSplitByWeights) {
  Random random(3);
  for (int i = 0; i < 500; ++i) {
    const auto workers = 1 + random.below(7);
    const auto rows = 1 + random.below(60);
    if (!splits_by_weight(rows, workers)) continue;
    const std::int64_t most = 1 + random.below(40);
    std::vector<std::int64_t> weights(static_cast<std::size_t>(rows)), sums;
    for (std::int64_t& weight : weights) weight = random.below(most);
    if (i % 2 == 0) std::ranges::sort(weights, std::greater());
    std::partial_sum(weights.begin(), weights.end(), std::back_inserter(sums));
    std::vector<WorkShare> shares(3);
    split_by_sums(
        rows, 4, workers, [&](std::int64_t n) { return sums[std::size_t(n - 1)]; }, shares);
    EXPECT_EQ(shares, split_between_workers(rows, 4, workers, weights)) << rows << " " << workers;
  }
}

TEST(SplitBetweenWorkers, GivesNothingWhereThereIsNothing) {
  EXPECT_TRUE(split_between_workers(0, 5, 6).empty());
  EXPECT_TRUE(split_between_workers(5, 0, 6).empty());
}

TEST(SplitBetweenWorkers, RefusesWhatCannotBeShared) {
  EXPECT_THROW(split_between_workers(1, 1, 0), Error);
  EXPECT_THROW(split_between_workers(-1, 1, 6), Error);
  EXPECT_THROW(split_between_workers(2, 1, 6, std::vector<std::int64_t>{1}), Error);
}

// Expects every cell of the job in exactly one share.
bool covers_once(const std::vector<WorkShare>& shares, std::int64_t rows, std::int64_t cols) {
  std::vector<int> seen(std::size_t(rows * cols));
  for (const WorkShare& s : shares)
    for (std::int64_t r = s.rows.begin; r < s.rows.end; ++r)
      for (std::int64_t c = s.cols.begin; c < s.cols.end; ++c) ++seen[std::size_t(r * cols + c)];
  return std::ranges::all_of(seen, [](int n) { return n == 1; });
}

TEST(SplitBetweenWorkers, CoversEveryCellOnceOnEverySmallJob) {
  for (const std::int64_t workers : {1, 2, 5, 6, 7})
    for (std::int64_t rows = 1; rows < 20; ++rows)
      for (std::int64_t cols = 1; cols < 20; ++cols) {
        SCOPED_TRACE(testing::Message() << rows << "x" << cols << " on " << workers);
        const auto shares = split_between_workers(rows, cols, workers);
        EXPECT_EQ(std::ssize(shares), std::min(workers, rows * cols));
        EXPECT_TRUE(covers_once(shares, rows, cols));
      }
}

TEST(SplitBetweenWorkers, CoversEveryRowOnceWithRandomWeights) {
  Random random(7);
  for (int repeat = 0; repeat < 200; ++repeat) {
    SCOPED_TRACE(testing::Message() << "seed 7, repeat " << repeat);
    std::vector<std::int64_t> weights(std::size_t(13 + random.below(40)));
    for (auto& w : weights) w = random.below(1 + random.below(50));
    const auto shares = split_between_workers(std::ssize(weights), 2, 6, weights);
    EXPECT_LE(shares.size(), 6u);
    EXPECT_TRUE(covers_once(shares, std::ssize(weights), 2));
  }
}

TEST(CoversOnce, RejectsAnOverlapAndAGap) {
  EXPECT_FALSE(covers_once({{{0, 1}, {0, 2}}}, 1, 3));
  EXPECT_FALSE(covers_once({{{0, 1}, {0, 2}}, {{0, 1}, {1, 3}}}, 1, 3));
}

}  // namespace
}  // namespace tessera::codelets
