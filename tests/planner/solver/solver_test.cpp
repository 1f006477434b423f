#include "tessera/planner/solver/solver.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

#include "tessera/base/error.hpp"
#include "tessera/planner/solver/checker.hpp"
#include "tessera/tests/planner/solver/allocation_count.hpp"

namespace tessera::planner::solver {
namespace {

// A layer of x by y by z cut over tiles in the way a planner does it: three factors, sums of terms
// that rise and fall with them, a limit on memory, cost first and memory second.
struct TileSplit {
  Model model;
  std::array<VarId, 3> parts;
  VarId cost, memory;
  Value x, y, z, tiles;

  TileSplit(Value x_size, Value y_size, Value z_size, Value tile_count, Value memory_limit)
      : x(x_size), y(y_size), z(z_size), tiles(tile_count) {
    const GroupId splits = model.add_priority_group("splits");
    model.prioritise(splits, model.default_group());
    for (VarId& p : parts) {
      p = model.variable(1, tiles);
      model.set_priority(p, splits);
    }
    const VarId used = model.product({parts[0], parts[1], parts[2]});
    model.less_or_equal(used, tiles);
    const VarId gx = model.ceil_div(model.constant(x), parts[0]);
    const VarId gy = model.ceil_div(model.constant(y), parts[1]);
    const VarId gz = model.ceil_div(model.constant(z), parts[2]);
    const VarId bucket = model.sum(model.ceil_div(model.constant(x * y / 10), used), gx);
    const VarId work = model.call_bounded(
        {gx, gy, gz},
        [](std::span<const Value> v) { return std::optional<Value>(work_of(v[0], v[1], v[2])); },
        [](std::span<const Interval> v) {
          return std::optional<Value>(work_of(v[0].lo, v[1].lo, v[2].lo));
        });
    const VarId moved = model.sum(model.product(gy, gz), model.product(bucket, parts[2]));
    const VarId partials = model.product(gx, gz);
    const VarId reduced = model.product(partials, model.reified_less(model.constant(1), parts[1]));
    cost = model.sum({work, moved, reduced, model.ceil_div(reduced, parts[1])});
    memory = model.sum({moved, partials, reduced});
    model.less_or_equal(memory, memory_limit);
  }

  static Value work_of(Value gx, Value gy, Value gz) {
    return 93 + 6 * (30 + (gx + 5) / 6 * (25 + (gy + 9) / 10 * gz));
  }

  // The same, written again without the solver: cost, memory.
  std::array<Value, 2> price(Value px, Value py, Value pz) const {
    const auto up = [](Value n, Value d) { return (n + d - 1) / d; };
    const Value gx = up(x, px), gy = up(y, py), gz = up(z, pz);
    const Value bucket = up(x * y / 10, px * py * pz) + gx, partials = gx * gz;
    const Value moved = gy * gz + bucket * pz, reduced = py > 1 ? partials : 0;
    return {work_of(gx, gy, gz) + moved + reduced + up(reduced, py), moved + partials + reduced};
  }

  std::vector<Objective> objectives() const { return {{cost}, {memory}}; }
};

constexpr Value kMemory = 60'000;

TEST(Solver, FindsTheTileSplitThatEnumerationFinds) {
  TileSplit s(640, 1000, 48, 256, kMemory);
  std::array<Value, 2> best{kMaxValue, kMaxValue};
  std::array<Value, 3> parts{};
  for (Value px = 1; px <= 256; ++px)
    for (Value py = 1; px * py <= 256; ++py)
      for (Value pz = 1; px * py * pz <= 256; ++pz) {
        const auto price = s.price(px, py, pz);
        if (price[1] > kMemory || price >= best) continue;
        best = price;
        parts = {px, py, pz};
      }
  const Result r = minimise(s.model, s.objectives());
  ASSERT_EQ(r.status, Status::Optimal);
  EXPECT_THAT(r.objectives, testing::ElementsAreArray(best));
  EXPECT_EQ((std::array{r[s.parts[0]], r[s.parts[1]], r[s.parts[2]]}), parts);
}

// Ceilings of about twice what was counted when this was written, so that a search or a propagator
// that grows weak fails as a number. There are some 40,000 splits over 1472 tiles.
TEST(Solver, StaysUnderItsCeilingOfNodesAndEvaluations) {
  TileSplit s(4096, 4096, 256, 1472, 10 * kMemory);
  const Result r = minimise(s.model, s.objectives());
  ASSERT_EQ(r.status, Status::Optimal);
  EXPECT_LT(r.counts.nodes, 2'400);
  EXPECT_LT(r.counts.evaluations, 60'000);
  EXPECT_LT(r.counts.function_calls, 2'000);
  RecordProperty("nodes", static_cast<int>(r.counts.nodes));
  RecordProperty("evaluations", static_cast<int>(r.counts.evaluations));
}

TEST(Solver, SaysInfeasibleForAMachineThatIsTooSmall) {
  TileSplit s(4096, 4096, 256, 16, 1'000);
  const Result r = minimise(s.model, s.objectives());
  EXPECT_EQ(r.status, Status::Infeasible);
  EXPECT_FALSE(r.has_solution());
  EXPECT_TRUE(r.values.empty());
  EXPECT_TRUE(r.objectives.empty());
}

TEST(Solver, StopsAtEveryNumberOfNodesWithAnAnswerThatHolds) {
  TileSplit s(640, 1000, 48, 256, kMemory);
  const Result full = minimise(s.model, s.objectives());
  Solver solver(s.model);
  bool nothing_yet = false, not_proven = false;
  for (std::int64_t nodes = 0; nodes <= full.counts.nodes; ++nodes) {
    const Result r = solver.minimise(s.objectives(), {.max_nodes = nodes});
    EXPECT_EQ(r.counts.nodes, nodes);
    ASSERT_EQ(r.status == Status::Optimal, nodes == full.counts.nodes) << nodes;
    nothing_yet |= r.status == Status::LimitReached;
    not_proven |= r.status == Status::Feasible;
    EXPECT_EQ(r.has_solution(), r.status != Status::LimitReached);
    if (!r.has_solution()) continue;
    EXPECT_EQ(first_violation(s.model, r.values), std::nullopt);
  }
  EXPECT_TRUE(nothing_yet);
  EXPECT_TRUE(not_proven);
}

TEST(Solver, StopsAtItsLimitOfEvaluations) {
  TileSplit s(640, 1000, 48, 256, kMemory);
  const Result full = minimise(s.model, s.objectives());
  for (const std::int64_t most : {std::int64_t{0}, std::int64_t{1}, full.counts.evaluations / 2,
                                  full.counts.evaluations - 1}) {
    const Result r = minimise(s.model, s.objectives(), {.max_evaluations = most});
    EXPECT_NE(r.status, Status::Optimal);
    EXPECT_EQ(r.counts.evaluations, most);
  }
  EXPECT_EQ(minimise(s.model, s.objectives(), {.max_evaluations = full.counts.evaluations}).status,
            Status::Optimal);
}

TEST(Solver, EndsEvenWherePropagationWouldClimbAValueAtATime) {
  Model m;
  const VarId a = m.variable(), b = m.variable();
  m.less(a, b);
  m.less(b, a);
  const Result r = minimise(m, {{a}}, {.max_evaluations = 10'000});
  EXPECT_EQ(r.status, Status::LimitReached);
  EXPECT_EQ(r.counts.evaluations, 10'000);
}

TEST(Solver, RefusesNegativeLimits) {
  Model m;
  EXPECT_THROW(minimise(m, {}, {.max_nodes = -1}), Error);
  EXPECT_THROW(minimise(m, {}, {.max_evaluations = -1}), Error);
  EXPECT_THROW(minimise(m, {}, {.solutions = 0}), Error);
}

TEST(Solver, StopsWhenCancelledAndKeepsWhatItHas) {
  TileSplit s(640, 1000, 48, 256, kMemory);
  std::atomic<bool> cancel{true};
  const Result at_once = minimise(s.model, s.objectives(), {}, {.cancel = &cancel, .progress = {}});
  EXPECT_EQ(at_once.status, Status::Cancelled);
  EXPECT_FALSE(at_once.has_solution());
  cancel = false;
  const Result later =
      minimise(s.model, s.objectives(), {},
               {.cancel = &cancel, .progress = [&](const Progress&) { cancel = true; }});
  EXPECT_EQ(later.status, Status::Cancelled);
  EXPECT_EQ(later.counts.solutions, 1);
  EXPECT_EQ(first_violation(s.model, later.values), std::nullopt);
}

TEST(Solver, ReportsEachIncumbentOnceEachBetterThanTheLast) {
  TileSplit s(640, 1000, 48, 256, kMemory);
  std::vector<Progress> seen;
  const Result r =
      minimise(s.model, s.objectives(), {},
               {.cancel = nullptr, .progress = [&](const Progress& p) { seen.push_back(p); }});
  ASSERT_EQ(static_cast<std::int64_t>(seen.size()), r.counts.solutions);
  for (std::size_t i = 1; i < seen.size(); ++i) {
    EXPECT_LE(seen[i].objectives, seen[i - 1].objectives);
    EXPECT_GT(seen[i].counts.nodes, seen[i - 1].counts.nodes);
  }
  EXPECT_EQ(seen.back().objectives, r.objectives);
}

TEST(Solver, BreaksTiesByTheFirstValuesInBranchingOrder) {
  // x + y == 7 is all that matters; 1 + 6 comes first, and 6 + 1 when y goes first.
  Model m;
  const VarId x = m.variable(1, 9), y = m.variable(1, 9);
  const VarId off = m.logical_not(m.reified_equal(m.sum(x, y), m.constant(7)));
  const Result by_id = minimise(m, {{off}});
  EXPECT_EQ(by_id[x], 1);
  EXPECT_EQ(by_id[y], 6);
  const GroupId first = m.add_priority_group();
  m.prioritise(first, m.default_group());
  m.set_priority(y, first);
  const Result y_first = minimise(m, {{off}});
  EXPECT_EQ(y_first[x], 6);
  EXPECT_EQ(y_first[y], 1);
}

TEST(Solver, PrunesOnLaterObjectivesToo) {
  // The first objective is always 0, so only the second can end the search before 100^3 points.
  Model m;
  const VarId zero = m.mod(m.variable(5, 5), m.constant(5));
  std::vector<VarId> v;
  for (int i = 0; i < 3; ++i) v.push_back(m.variable(0, 99));
  const Result r = minimise(m, {{zero}, {m.sum(v)}});
  EXPECT_EQ(r.status, Status::Optimal);
  EXPECT_EQ(r.objectives, (std::vector<Value>{0, 0}));
  EXPECT_LT(r.counts.nodes, 100);
}

TEST(Solver, WithoutObjectivesFindsTheFirstSolutionInOrder) {
  Model m;
  const VarId a = m.variable(0, 20), b = m.variable(0, 20);
  m.less_or_equal(25, m.sum(a, b));
  const Result r = minimise(m, {});
  EXPECT_EQ(r.status, Status::Optimal);
  EXPECT_EQ(r[a], 5);
  EXPECT_EQ(r[b], 20);
}

TEST(Solver, SolvesAModelOfNothing) {
  const Result r = minimise(Model{}, {});
  EXPECT_EQ(r.status, Status::Optimal);
  EXPECT_TRUE(r.has_solution());
}

TEST(Solver, FixesAnUnboundedFreeVariableInAFewDozenNodes) {
  Model m;
  const VarId v = m.variable();
  const Result r = minimise(m, {});
  EXPECT_EQ(r[v], 0);
  EXPECT_LT(r.counts.nodes, 200);
}

TEST(Solver, TakesTheUpperBoundsOfObjectivesAsLimits) {
  TileSplit s(640, 1000, 48, 256, kMemory);
  const Result free = minimise(s.model, s.objectives());
  const Value cost = free.objectives[0], memory = free.objectives[1];
  EXPECT_EQ(minimise(s.model, {{s.cost, cost}, {s.memory, memory}}).values, free.values);
  EXPECT_EQ(minimise(s.model, {{s.cost, cost - 1}, {s.memory}}).status, Status::Infeasible);
  const Result smaller = minimise(s.model, {{s.cost}, {s.memory, memory - 1}});
  ASSERT_EQ(smaller.status, Status::Optimal);
  EXPECT_GT(smaller.objectives[0], cost);
  EXPECT_LT(smaller.objectives[1], memory);
}

TEST(Solver, ThrowsWhatAFunctionThrowsAndCanBeUsedAgain) {
  Model m;
  bool broken = true;
  const VarId v = m.variable(1, 9);
  const VarId f = m.call({v}, [&broken](std::span<const Value> a) {
    if (broken) throw std::runtime_error("out of order");
    return std::optional<Value>(10 - a[0]);
  });
  Solver solver(m);
  EXPECT_THROW(solver.minimise({{f}}), std::runtime_error);
  broken = false;
  EXPECT_EQ(solver.minimise({{f}})[v], 9);
}

TEST(Solver, RefusesFunctionsThatBreakTheirPromises) {
  Model negative;
  negative.call({}, [](std::span<const Value>) { return std::optional<Value>(-1); });
  EXPECT_THROW(minimise(negative, {}), Error);
  // Declared as rising, in truth 0, 1, 2, ...: an answer that the checker sees through.
  Model changing;
  Value calls = 0;
  changing.call({changing.constant(1)},
                [&calls](std::span<const Value>) { return std::optional<Value>(calls++); });
  EXPECT_THROW(minimise(changing, {}), Error);
}

TEST(Solver, CountsTheSameOnEveryRunAndOnEveryThread) {
  TileSplit s(640, 1000, 48, 256, kMemory);
  const Result alone = minimise(s.model, s.objectives());
  std::array<Result, 4> results;
  {
    std::vector<std::jthread> threads;
    for (Result& r : results)
      threads.emplace_back([&s, &r] { r = minimise(s.model, s.objectives()); });
  }
  for (const Result& r : results) {
    EXPECT_EQ(r.values, alone.values);
    EXPECT_EQ(r.counts, alone.counts);
  }
}

TEST(Solver, AllocatesNothingThatGrowsWithTheSearch) {
  TileSplit s(4096, 4096, 256, 1472, 10 * kMemory);
  Solver solver(s.model);
  const auto objectives = s.objectives();
  const auto allocations_of = [&](std::int64_t max_nodes) {
    const std::int64_t before = test::allocation_count();
    const Result r = solver.minimise(objectives, {.max_nodes = max_nodes});
    EXPECT_TRUE(r.has_solution());
    return test::allocation_count() - before;
  };
  const std::int64_t first = allocations_of(10'000'000);
  EXPECT_EQ(allocations_of(100), allocations_of(10'000'000));
  EXPECT_GE(first, allocations_of(100));
}

}  // namespace
}  // namespace tessera::planner::solver
