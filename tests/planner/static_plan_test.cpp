#include "tessera/planner/static_plan.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "tessera/base/int_math.hpp"
#include "tessera/base/random.hpp"
#include "tessera/planner/internal/static_load.hpp"
#include "tessera/planner/internal/static_search.hpp"
#include "tessera/tests/planner/static_pattern.hpp"
#include "tessera/tests/support/message_of.hpp"

namespace tessera::planner {
namespace {

using testing::HasSubstr;

// Counts blocks, rows and columns of every tile with sets.
void expect_counts_of_sets(const StaticLayout& layout, const sparse::Csr<float>& m) {
  std::map<std::int32_t, std::set<std::int64_t>> rows, columns;
  std::map<std::int32_t, std::int64_t> blocks;
  for (std::int64_t r = 0; r < m.block_rows(); ++r)
    for (std::int64_t i = m.row_begin[std::size_t(r)]; i < m.row_begin[std::size_t(r) + 1]; ++i) {
      const std::int32_t tile = layout.tile_of[std::size_t(i)];
      ++blocks[tile];
      rows[tile].insert(r);
      columns[tile].insert(m.col[std::size_t(i)]);
    }
  for (std::size_t t = 0; t < layout.tiles.size(); ++t) {
    const auto tile = std::int32_t(t);
    const StaticTile counted{blocks[tile], std::ssize(rows[tile]), std::ssize(columns[tile])};
    EXPECT_EQ(layout.tiles[t], counted) << "tile " << t;
  }
}

// Within a tile all blocks are of one band, and the tiles of a band have equal runs but the last.
void expect_equal_runs(const StaticPlan& plan, const StaticLayout& layout,
                       const sparse::Csr<float>& m) {
  std::map<std::int32_t, std::set<std::int64_t>> bands;
  for (std::size_t i = 0; i < m.col.size(); ++i) {
    const auto band = std::upper_bound(plan.bands.begin(), plan.bands.end(), m.col[i]);
    bands[layout.tile_of[i]].insert(band - plan.bands.begin());
  }
  std::map<std::int64_t, std::int64_t> run;
  for (const auto& [tile, own] : bands) {
    ASSERT_EQ(own.size(), 1u) << "tile " << tile;
    const std::int64_t blocks = layout.tiles[std::size_t(tile)].blocks;
    const auto [first, is_first] = run.emplace(*own.begin(), blocks);
    EXPECT_LE(blocks, first->second) << "tile " << tile;
  }
}

TEST(StaticPlan, PlacesEveryBlockOnATileOfItsBandAndCountsWhatTilesHave) {
  Random random(1);
  for (int trial = 0; trial < 40; ++trial) {
    SCOPED_TRACE(trial);
    const std::int64_t sides[] = {1, 4, 8, 16};
    const auto m = random_matrix(random, 1 + random.below(40), 1 + random.below(40),
                                 sides[random.below(4)], random.unit());
    if (m.blocks() == 0) continue;
    const StaticPlan plan = plan_or_fail(m, 1 + random.below(70), 1 + random.below(64));
    for (const StaticLayout& layout : plan.layouts) {
      expect_counts_of_sets(layout, m);
      expect_equal_runs(plan, layout, m);
    }
  }
}

TEST(StaticPlan, CutsTheBatchInWholeVectorsWithoutAGap) {
  Random random(2);
  const auto m = random_matrix(random, 20, 20, 4, 0.2);
  for (const std::int64_t batch : {1, 4, 30, 64, 1000}) {
    const StaticPlan plan = plan_or_fail(m, batch, 64);
    std::int64_t column = 0, tile = 0;
    for (const StaticPart& part : plan.parts) {
      EXPECT_EQ(part.begin, column);
      EXPECT_EQ(part.end % 4, 0);
      EXPECT_EQ(part.first_tile, tile);
      column = part.end;
      tile += std::ssize(plan.layouts[std::size_t(part.layout)].tiles);
    }
    EXPECT_EQ(column, round_up(batch, 4));
    EXPECT_LE(tile, 64);
  }
}

TEST(StaticPlan, MayCutARowBetweenTiles) {
  Random random(3);
  const auto m = random_matrix(random, 1, 60, 1, 1.0);
  const StaticPlan plan = plan_or_fail(m, 4, 8);
  std::set<std::int32_t> tiles(plan.layouts[0].tile_of.begin(), plan.layouts[0].tile_of.end());
  EXPECT_GT(tiles.size(), 1u);
}

TEST(StaticPlan, OfNoBlocksIsEmptyAndOfOneTileHasAllBlocks) {
  Random random(4);
  EXPECT_TRUE(plan_or_fail(random_matrix(random, 6, 6, 8, 0.0), 16, 8).parts.empty());
  const auto m = random_matrix(random, 6, 6, 8, 0.5);
  const StaticPlan plan = plan_or_fail(m, 16, 1);
  ASSERT_EQ(plan.layouts.size(), 1u);
  EXPECT_EQ(plan.layouts[0].tiles.at(0).blocks, m.blocks());
}

TEST(StaticCut, PutsRowsWithFewBlocksLastAndLeavesThemOutOfTheDensity) {
  // 20 rows of 20 blocks and one row of one block, which is less than a tenth of the mean.
  sparse::Csr<float> m;
  m.rows = 21;
  m.cols = 20;
  m.col = {7};
  m.row_begin = {0, 1};
  for (std::int64_t row = 1; row < 21; ++row) {
    for (std::int32_t c = 0; c < 20; ++c) m.col.push_back(c);
    m.row_begin.push_back(m.blocks());
  }
  const auto counts = internal::count_blocks(view_of(m));
  EXPECT_EQ(counts.usual_rows, 20);
  EXPECT_EQ(counts.usual_columns, 20);
  EXPECT_EQ(counts.density(), 1.0);
  const auto bands = internal::bands_of(counts, 1);
  const StaticLayout layout = internal::layout_of(view_of(m), counts, bands, {4});
  EXPECT_EQ(layout.tile_of[0], 3);
  EXPECT_EQ(layout.tile_of[1], 0);
}

TEST(StaticCut, BandsTakeColumnsUntilTheyHaveTheirShare) {
  internal::StaticCounts counts;
  counts.columns = {5, 0, 1, 1, 1, 4, 0};
  counts.blocks = 12;
  const auto bands = internal::bands_of(counts, 3);
  EXPECT_EQ(bands.begin, (std::vector<std::int64_t>{0, 1, 6}));
  EXPECT_EQ(bands.blocks, (std::vector<std::int64_t>{5, 7}));
}

TEST(StaticPlan, SaysWhatDoesNotFit) {
  Random random(6);
  const auto m = random_matrix(random, 16, 16, 16, 1.0);
  device::Machine machine = small_machine(4);
  machine.tile_memory = Bytes(4096);
  const auto result = plan_static_as_poplibs(problem_of(m, 64), view_of(m), machine);
  EXPECT_FALSE(result.plan);
  EXPECT_THAT(result.reason, HasSubstr("a tile needs "));
  EXPECT_THAT(result.reason, HasSubstr("has 4096, of which temporary data may take 60 %"));
}

TEST(StaticPlan, RefusesRequestsByName) {
  Random random(7);
  const auto m = random_matrix(random, 4, 4, 4, 0.5);
  const auto refusal = [&](const Problem& problem, const sparse::Csr<float>& matrix,
                           double memory = 0.6) {
    return test::refusal(
        [&] { plan_static_as_poplibs(problem, view_of(matrix), small_machine(4), {memory}); });
  };
  Problem p = problem_of(m, 8);
  EXPECT_THAT(refusal(p, m, 0), HasSubstr("availableMemoryProportion is 0"));
  p.size.g = 2;
  EXPECT_THAT(refusal(p, m), HasSubstr("one group"));
  p = problem_of(m, 8);
  p.block = {2, 2};
  EXPECT_THAT(refusal(p, m), HasSubstr("no static kernel for blocks of 2x2"));
  p = problem_of(m, 8);
  p.size.x = 20;
  EXPECT_THAT(refusal(p, m), HasSubstr("the layer needs 5 x 4"));
  auto wrong = random_matrix(random, 4, 4, 4, 1.0);
  std::swap(wrong.col[4], wrong.col[5]);
  EXPECT_THAT(refusal(problem_of(m, 8), wrong), HasSubstr("columns of block row 1"));
  wrong = m;
  wrong.row_begin.back() += 1;
  EXPECT_THAT(refusal(problem_of(m, 8), wrong), HasSubstr("first positions"));
}

}  // namespace
}  // namespace tessera::planner
