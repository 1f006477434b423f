#include "tessera/planner/internal/static_counted.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "tessera/base/dims.hpp"
#include "tessera/base/error.hpp"
#include "tessera/codelets/cost/static_cycles.hpp"
#include "tessera/codelets/cost/vector_cycles.hpp"
#include "tessera/planner/internal/static_cut_counts.hpp"
#include "tessera/tests/planner/static_pattern.hpp"

namespace tessera::planner {
namespace {

std::int64_t cycles_of(const PlanCost& cost, Term term) {
  for (const CostTerm& t : cost.passes.at(0).terms)
    if (t.name == term) return t.cycles.value;
  ADD_FAILURE() << to_string(term);
  return -1;
}

// The blocks, columns and rows of one tile of one part, found by looking at every block.
struct SlowTile {
  std::set<std::int64_t> columns;
  std::map<std::int64_t, std::int64_t> rows;  // blocks of each row
  std::int64_t blocks = 0;
};

std::vector<SlowTile> slow_tiles(const StaticLayout& layout, const sparse::Csr<float>& m) {
  std::vector<SlowTile> tiles(layout.tiles.size());
  for (std::int64_t r = 0; r < m.block_rows(); ++r)
    for (std::int64_t i = m.row_begin[std::size_t(r)]; i < m.row_begin[std::size_t(r) + 1]; ++i) {
      SlowTile& tile = tiles[std::size_t(layout.tile_of[std::size_t(i)])];
      tile.columns.insert(m.col[std::size_t(i)]);
      ++tile.rows[r];
      ++tile.blocks;
    }
  return tiles;
}

// The figures of the slowest tiles on a machine that receives 4 bytes a cycle and has 6 workers.
struct SlowCost {
  std::int64_t receive = 0, values = 0, multiply = 0, sums = 0, reduce = 0;
};

void add_tile(SlowCost& cost, std::size_t index, const std::vector<SlowTile>& all,
              std::int64_t side, std::int64_t z) {
  const SlowTile& tile = all[index];
  constexpr std::int64_t kBytes = 2, kWorkers = 6;
  const codelets::StaticKernel kernel{{side, side}, DataType::Half};
  const std::int64_t rows = std::ssize(tile.rows);
  cost.receive = std::max(cost.receive, ceil_div(std::ssize(tile.columns) * side * z * kBytes, 4));
  cost.values = std::max(cost.values, ceil_div(tile.blocks * side * side * kBytes, 4));
  const std::int64_t worker =
      codelets::static_worker_cycles(kernel, ceil_div(z, kWorkers))(rows, tile.blocks).value;
  const std::int64_t supervisor =
      codelets::static_supervisor_cycles(kernel)(rows, tile.blocks).value;
  if (rows > 0) cost.multiply = std::max(cost.multiply, supervisor + kWorkers * worker);
  std::int64_t results = 0, others = 0, sent = 0;
  for (const auto& [row, blocks] : tile.rows) {
    const auto has_row = [r = row](const SlowTile& other) { return other.rows.contains(r); };
    const auto depth = std::ranges::count_if(all, has_row);
    if (depth == 1) continue;
    const auto before = std::ranges::count_if(std::span(all).first(index), has_row);
    const std::int64_t share = share_of(side * z, 1, depth, before).size();
    results += share;
    others += share * (depth - 1);
    sent += side * z - share;
  }
  cost.sums = std::max(cost.sums, ceil_div(std::max(others, sent) * kBytes, 4));
  if (results == 0) return;
  const auto reduce = codelets::reduce_cycles(results, ceil_div(results + others, results),
                                              DataType::Half, DataType::Half, kWorkers);
  cost.reduce = std::max(cost.reduce, reduce.value);
}

TEST(StaticCounted, EveryTermIsThatOfTheSlowestTile) {
  Random random(11);
  for (int trial = 0; trial < 30; ++trial) {
    SCOPED_TRACE(trial);
    const std::int64_t sides[] = {4, 8, 16}, side = sides[random.below(3)];
    const auto m = random_matrix(random, 1 + random.below(40), 1 + random.below(40), side,
                                 0.02 + random.unit());
    if (m.blocks() == 0) continue;
    const std::int64_t batch = 1 + random.below(90), tiles = 2 + random.below(64);
    const StaticPlan plan = plan_or_fail(m, batch, tiles);
    SlowCost slow;
    for (const StaticPart& part : plan.parts) {
      const auto all = slow_tiles(plan.layouts[std::size_t(part.layout)], m);
      for (std::size_t t = 0; t < all.size(); ++t) add_tile(slow, t, all, side, part.columns());
    }
    const PlanCost cost =
        count_static_cost(plan, problem_of(m, batch), view_of(m), small_machine(tiles));
    const bool cut = plan.parts.size() > 1;
    EXPECT_EQ(cycles_of(cost, Term::ExchangeOperands), slow.receive);
    EXPECT_EQ(cycles_of(cost, Term::ExchangeAlongZ), cut ? slow.values : 0);
    EXPECT_EQ(cycles_of(cost, Term::Multiply), slow.multiply);
    EXPECT_EQ(cycles_of(cost, Term::ExchangeSums), slow.sums);
    EXPECT_EQ(cycles_of(cost, Term::ReduceSums), slow.reduce);
    // Barriers of 400 cycles and launches of 11.
    const std::int64_t adds = slow.reduce > 0;
    EXPECT_EQ(cycles_of(cost, Term::BarriersAndLaunches), 400 * (1 + cut + adds) + 11 * (3 + adds));
    EXPECT_EQ(cycles_of(cost, Term::ArrangeOperands),
              ceil_div(m.cols * round_up(batch, 4) * 2, tiles));
    EXPECT_EQ(cost.cycles, cost.passes[0].cycles());
  }
}

struct ElementCase {
  Problem problem{.size = {1, 64, 64, 16}};
  device::Machine machine = small_machine(4);
  std::int64_t cycles(const std::vector<internal::RowOnTile>& rows, std::int64_t z) const {
    return internal::counted_kernel_cycles({problem, machine, {}}, rows, z);
  }
};

// With 7 rows of 6 workers, the first worker takes rows until it has a sixth of the elements.
TEST(StaticCounted, WorkersOfElementsTakeRowsUntilTheyHaveTheirShare) {
  const auto worker = codelets::static_worker_cycles({}, 16);
  const std::vector<internal::RowOnTile> rows = {{0, 1}, {1, 2}, {2, 9}, {3, 3},
                                                 {4, 3}, {5, 3}, {6, 3}};
  // 24 elements: the first takes rows 0 to 2, since it has 3 of its 4 after two of them.
  EXPECT_EQ(ElementCase{}.cycles(rows, 16), 6 * worker(3, 12).value);
}

TEST(StaticCounted, SixRowsOrFewerAreOneForEachWorker) {
  const auto worker = codelets::static_worker_cycles({}, 16);
  EXPECT_EQ(ElementCase{}.cycles({{0, 1}, {1, 1}, {2, 9}, {3, 1}}, 16), 6 * worker(1, 9).value);
}

TEST(StaticCounted, ThreeRowsOrFewerAreCutAcrossTheBatch) {
  const auto half = codelets::static_worker_cycles({}, 8);
  EXPECT_EQ(ElementCase{}.cycles({{0, 5}, {1, 5}, {2, 5}}, 16), 6 * half(1, 5).value);
  const auto whole = codelets::static_worker_cycles({}, 12);
  EXPECT_EQ(ElementCase{}.cycles({{0, 5}, {1, 5}, {2, 5}}, 12), 6 * whole(1, 5).value);
}

TEST(StaticCounted, ResidentBytesAreValuesWordsAndEvenShares) {
  sparse::Csr<float> m;
  m.rows = m.cols = 8;
  m.block = {4, 4};
  m.row_begin = {0, 1, 2};
  m.col = {0, 1};
  const PlanCost cost =
      count_static_cost(plan_or_fail(m, 4, 1), problem_of(m, 4), view_of(m), small_machine(1));
  constexpr std::int64_t kWords = 6 * 2 + 1 + 2 * 2 + 2, kValues = 2 * 16, kShares = 2 * 8 * 4;
  EXPECT_EQ(cost.resident, Bytes(2 * (kWords + kValues + kShares)));
  EXPECT_EQ(cycles_of(cost, Term::ExchangeOperands), 0);
  EXPECT_EQ(cycles_of(cost, Term::BarriersAndLaunches), 3 * 11);
}

// Two parts of the batch on one tile each: both have all words and half of the values.
TEST(StaticCounted, PartsOfTheBatchStoreSharesOfTheValues) {
  Random random(14);
  const auto m = random_matrix(random, 2, 2, 4, 1.1);
  const PlanCost cost =
      plan_static(problem_of(m, 8), view_of(m), small_machine(2), {.z_parts = 2}).plan->cost;
  constexpr std::int64_t kWords = 6 * 2 + 1 + 2 * 2 + 4, kValues = 4 * 16 / 2;
  constexpr std::int64_t kShares = 2 * 8 * 8 / 2;
  EXPECT_EQ(cost.resident, Bytes(2 * (kWords + kValues + kShares)));
}

// A matrix with rows and columns exchanged, and the tile of each of its blocks.
struct Turned {
  sparse::Csr<float> matrix;
  StaticPlan plan;
};

Turned turned(const sparse::Csr<float>& m, const StaticPlan& plan) {
  Turned result{.matrix = {}, .plan = plan};
  result.matrix.rows = m.cols;
  result.matrix.cols = m.rows;
  result.matrix.block = m.block;
  for (StaticLayout& layout : result.plan.layouts) layout.tile_of.clear();
  result.matrix.row_begin = {0};
  for (std::int64_t column = 0; column < m.block_cols(); ++column) {
    for (std::int64_t row = 0; row < m.block_rows(); ++row)
      for (std::int64_t i = m.row_begin[std::size_t(row)]; i < m.row_begin[std::size_t(row) + 1];
           ++i) {
        if (m.col[std::size_t(i)] != column) continue;
        result.matrix.col.push_back(std::int32_t(row));
        for (std::size_t l = 0; l < plan.layouts.size(); ++l)
          result.plan.layouts[l].tile_of.push_back(plan.layouts[l].tile_of[std::size_t(i)]);
      }
    result.matrix.row_begin.push_back(std::ssize(result.matrix.col));
  }
  return result;
}

TEST(StaticCounted, GradAIsFwdOfTheTransposedPatternWithItsBlocksTransposed) {
  Random random(13);
  for (int trial = 0; trial < 15; ++trial) {
    SCOPED_TRACE(trial);
    const std::int64_t sides[] = {1, 4, 8, 16}, side = sides[random.below(4)];
    const auto m = random_matrix(random, 1 + random.below(20), 1 + random.below(20), side,
                                 0.1 + random.unit());
    if (m.blocks() == 0) continue;
    const std::int64_t batch = 1 + random.below(60), tiles = 2 + random.below(40);
    const auto machine = small_machine(tiles);
    const StaticPlan plan = plan_or_fail(m, batch, tiles);
    const Turned other = turned(m, plan);
    const PlanCost fwd = count_static_cost(other.plan, problem_of(other.matrix, batch),
                                           view_of(other.matrix), machine);
    Problem problem = problem_of(m, batch);
    problem.grad_a = true;
    const PlanCost both = count_static_cost(plan, problem, view_of(m), machine);
    const PassCost& grad_a = both.passes.at(1);
    std::int64_t transpose = 0;
    for (const CostTerm& term : grad_a.terms) {
      const bool is_own =
          term.name == Term::TransposeValues || term.name == Term::BarriersAndLaunches;
      if (term.name == Term::TransposeValues) transpose = term.cycles.value;
      if (is_own) continue;
      EXPECT_EQ(term.cycles.value, cycles_of(fwd, term.name)) << to_string(term.name);
    }
    EXPECT_GT(transpose, 0);
    EXPECT_EQ(grad_a.cycles(), fwd.cycles + Cycles(transpose) + machine.launch);
    EXPECT_EQ(both.cycles, both.passes[0].cycles() + grad_a.cycles());
  }
}

TEST(CutCounts, KeepsNoMoreRowsThanItMay) {
  Random random(14);
  const auto m = random_matrix(random, 12, 12, 4, 0.5);
  const internal::BlockCut small{.tiles = 2}, middle{.tiles = 3}, large{.tiles = 4};
  internal::CutCounts all(view_of(m));
  const auto rows_of = [&](const internal::BlockCut& cut) {
    const internal::StaticLoad& load = all.loads(cut, false)->load;
    return std::ssize(load.rows) + std::ssize(load.tiles);
  };
  internal::CutCounts counts(view_of(m), rows_of(small) + rows_of(middle) - 1);
  const internal::CutLoads* const kept = counts.loads(small, false);
  const internal::CutLoads* const last = counts.loads(middle, false);
  EXPECT_EQ(counts.loads(large, false), last) << "the one before it was not kept";
  EXPECT_EQ(counts.loads(small, false), kept);
  EXPECT_NE(kept, last);
}

TEST(StaticCounted, RefusesThePlanOfAnotherPattern) {
  Random random(12);
  const auto m = random_matrix(random, 8, 8, 4, 0.5), other = random_matrix(random, 8, 8, 4, 0.4);
  EXPECT_THROW(
      count_static_cost(plan_or_fail(m, 8, 8), problem_of(m, 8), view_of(other), small_machine(8)),
      Error);
}

}  // namespace
}  // namespace tessera::planner
