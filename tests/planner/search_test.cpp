#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include "tessera/base/random.hpp"
#include "tessera/planner/internal/bound_search.hpp"
#include "tessera/planner/internal/lower_bound.hpp"
#include "tessera/planner/internal/planner_search.hpp"
#include "tessera/tests/planner/drawn_stats.hpp"
#include "tessera/tests/planner/exhaustive_search.hpp"

// The search and its bounds against plain enumeration.
namespace tessera::planner::internal {
namespace {

constexpr std::uint64_t kSeed = 11;

Problem random_problem(Random& random) {
  const std::int64_t blocks[] = {1, 1, 4, 5, 8, 16};
  const double densities[] = {0, 0.001, 0.01, 0.1, 0.3, 1};
  const std::int64_t block = blocks[random.below(6)];
  Problem p;
  p.block = {block, block};
  if (block == 5) p.block.cols = 3;
  p.size = {1 + random.below(8) / 7, p.block.rows * (1 + random.below(90)),
            p.block.cols * (1 + random.below(90)), 1 + random.below(96)};
  p.density = densities[random.below(6)];
  p.data_type = random.below(2) == 0 ? DataType::Half : DataType::Float;
  if (block > 1 && p.data_type == DataType::Half && random.below(2) == 0)
    p.partials_type = DataType::Half;
  p.grad_a = random.below(2) == 0;
  p.grad_w = random.below(2) == 0;
  return p;
}

struct Request {
  Problem problem;
  device::Machine machine;
  Options options;
};

Request random_request(Random& random) {
  Request r{random_problem(random), device::machine_preset("gc200"), {}};
  const std::int64_t tiles[] = {1, 2, 7, 24, 64};
  r.machine.tiles = std::max(r.problem.size.g, tiles[random.below(5)]);
  r.machine.tiles_per_exchange_bus = 1 + random.below(4);
  if (random.below(4) == 0) r.machine.word_bits = 32;
  const double memory[] = {0.001, 0.01, 0.1, 0.6};
  r.options.available_memory_proportion = memory[random.below(4)];
  r.options.shared_buckets = random.below(2) == 0;
  const Placement placements[] = {Placement::EvenSpread, Placement::AsLeft, Placement::AtHome};
  r.options.operand_placement = placements[random.below(3)];
  if (random.below(2) == 0) r.options.poplibs_parity = true;
  return r;
}

// Calls check(request) for random requests.
void for_requests(std::uint64_t seed, int count, const std::function<void(const Request&)>& check) {
  Random random(seed);
  for (int i = 0; i < count; ++i) {
    const Request r = random_request(random);
    SCOPED_TRACE(testing::Message() << "seed " << seed << " case " << i << ": "
                                    << to_string(r.problem) << " on " << r.machine.tiles);
    check(r);
  }
}

std::vector<Case> cases_of(const Request& r) {
  std::vector<Case> cases;
  for (const Candidate& candidate : candidates(r.problem, r.machine, r.options))
    cases.push_back(make_case(r.problem, r.machine, r.options, candidate, nullptr));
  return cases;
}

void expect_same(const PlanResult& truth, const PlanResult& found) {
  ASSERT_EQ(found.status, truth.status);
  ASSERT_EQ(found.has_plan, truth.has_plan);
  if (truth.has_plan) {
    EXPECT_EQ(found.plan, truth.plan);
  }
  EXPECT_EQ(found.memory_bound, truth.memory_bound);
}

TEST(BoundSearch, FindsThePlanThatEnumerationFindsOnRandomLayers) {
  int plans = 0, failures = 0;
  for_requests(kSeed, 400, [&](const Request& r) {
    const auto truth = plan_with({r.problem, r.machine, r.options, nullptr}, rank_exhaustively);
    expect_same(truth, plan_with({r.problem, r.machine, r.options, nullptr}, rank_by_bounds));
    ++(truth.has_plan ? plans : failures);
  });
  EXPECT_GT(plans, 50);
  EXPECT_GT(failures, 10);
}

TEST(BoundSearch, RanksPlansAsEnumerationDoes) {
  int full = 0;
  for_requests(kSeed + 2, 200, [&](const Request& r) {
    const std::vector<Case> cases = cases_of(r);
    const Ranking truth = rank_plans(cases, rank_exhaustively, {.count = 4}),
                  found = rank_plans(cases, rank_by_bounds, {.count = 4});
    ASSERT_EQ(found.cheapest.size(), truth.cheapest.size());
    for (std::size_t k = 0; k < truth.cheapest.size(); ++k) {
      EXPECT_EQ(found.cheapest[k].of, truth.cheapest[k].of);
      EXPECT_EQ(found.cheapest[k].at.parts, truth.cheapest[k].at.parts);
    }
    full += truth.cheapest.size() == 4;
  });
  EXPECT_GT(full, 50);
}

// A search of two layouts stops both again and again, and lowers their limits.
TEST(BoundSearch, FindsTheSameWhenItIsStoppedAndItsLimitIsLowered) {
  int settled = 0, lowered = 0;
  for_requests(kSeed + 5, 200, [&](const Request& r) {
    const std::vector<Case> cases = cases_of(r);
    const std::int64_t bound = temp_bounds(r.machine, r.options).front();
    const auto truth = rank_exhaustively(cases, bound, {.count = 4}).cheapest;
    const std::int64_t cheapest = truth.empty() ? kUnbounded : truth.front().at.cycles;
    BoundSearch search(cases, bound, {.count = 4});
    std::int64_t least = search.least();
    for (; !search.is_settled(); search.advance()) {
      EXPECT_LE(search.least(), cheapest);
      EXPECT_GE(search.least(), least) << "a bound falls";
      least = search.least();
    }
    EXPECT_EQ(search.least(), cheapest);
    ++settled;
    if (truth.size() < 2) return;
    search.lower_limit(truth.back().at.cycles);
    search.finish();
    const auto& found = search.found().front();
    const auto below = std::ranges::count_if(
        truth, [&](const RankedPlan& plan) { return plan.at.cycles < truth.back().at.cycles; });
    ASSERT_EQ(std::ssize(found), below);
    for (std::size_t k = 0; k < found.size(); ++k) EXPECT_EQ(found[k].at.parts, truth[k].at.parts);
    ++lowered;
  });
  EXPECT_EQ(settled, 200);
  EXPECT_GT(lowered, 50);
}

TEST(BoundSearch, FindsOfEveryKindWhatASearchOfThatKindFinds) {
  int both = 0;
  for_requests(kSeed + 6, 200, [&](const Request& r) {
    const std::vector<Case> cases = cases_of(r);
    const std::int64_t bound = temp_bounds(r.machine, r.options).front();
    std::vector<std::size_t> kinds;
    std::vector<std::vector<Case>> apart(2);
    for (const Case& c : cases) {
      kinds.push_back(c.candidate.dense ? 1 : 0);
      apart[kinds.back()].push_back(c);
    }
    BoundSearch search(cases, bound, {.count = 3}, kinds);
    search.finish();
    for (std::size_t kind = 0; kind < search.found().size(); ++kind) {
      const auto& found = search.found()[kind];
      const auto truth = rank_exhaustively(apart[kind], bound, {.count = 3}).cheapest;
      ASSERT_EQ(found.size(), truth.size());
      for (std::size_t k = 0; k < truth.size(); ++k) {
        EXPECT_EQ(found[k].at.parts, truth[k].at.parts);
        EXPECT_EQ(found[k].at.cycles, truth[k].at.cycles);
      }
      both += kind == 1 && !truth.empty();
    }
  });
  EXPECT_GT(both, 20);
}

// The limits are prices of partitions, so the search meets partitions that cost just as much.
TEST(BoundSearch, FindsAPlanBelowALimitWhereverThereIsOne) {
  int found = 0, none = 0;
  for_requests(kSeed + 3, 100, [&](const Request& r) {
    const std::vector<Case> cases = cases_of(r);
    for (const RankedPlan& limit : rank_plans(cases, rank_exhaustively, {.count = 9}).cheapest) {
      const std::int64_t cycles = limit.at.cycles;
      const Ranking truth = rank_plans(cases, rank_exhaustively, {.fewer_than = cycles}),
                    any = rank_plans(cases, rank_by_bounds, {.fewer_than = cycles, .any = true});
      ASSERT_EQ(any.cheapest.empty(), truth.cheapest.empty()) << "below " << cycles;
      if (any.cheapest.empty()) {
        ++none;
        continue;
      }
      EXPECT_LT(any.cheapest.front().at.cycles, cycles);
      ++found;
    }
  });
  EXPECT_GT(found, 100);
  EXPECT_GT(none, 50);
}

// A partition within one of the cases' limits, if the draw has one.
std::optional<Dims> random_partition(const Case& c, Random& random) {
  const auto up_to = [&](std::int64_t n) { return 1 + random.below(std::min(n, c.machine.tiles)); };
  const Dims at{c.grains.g, up_to(c.grains.x), up_to(c.grains.y), up_to(c.grains.z)};
  if (!partition_is_legal(c, at)) return {};
  return at;
}

Box random_box_around(Dims at, const Case& c, Random& random) {
  if (random.below(3) == 0) return {at, at};
  return {{at.g, 1 + random.below(at.x), 1 + random.below(at.y), 1 + random.below(at.z)},
          {at.g, at.x + random.below(c.grains.x - at.x + 1),
           at.y + random.below(c.grains.y - at.y + 1), at.z + random.below(c.grains.z - at.z + 1)}};
}

// Expects the bounds of boxes to be no more than the costs of partitions in them. Returns the
// number of partitions.
int expect_bounds(const Request& r, const std::vector<Case>& cases, int draws, Random& random) {
  int legal = 0;
  for (int i = 0; i < draws; ++i) {
    const Case& c = cases[std::size_t(random.below(std::ssize(cases)))];
    const auto at = random_partition(c, random);
    if (!at) continue;
    const PartsCost cost = cost_of(c, *at);
    if (!cost.legal) continue;
    const Box box = random_box_around(*at, c, random);
    SCOPED_TRACE(testing::Message()
                 << to_string(r.problem) << " on " << r.machine.tiles << " at " << to_string(*at)
                 << " in " << to_string(box.lo) << " .. " << to_string(box.hi));
    const Bound bound = lower_bound(c, box);
    EXPECT_TRUE(bound.possible);
    EXPECT_LE(bound.cycles, cost.cycles);
    EXPECT_LE(bound.temp, cost.temp);
    ++legal;
  }
  return legal;
}

TEST(LowerBound, IsNeverAboveTheCostOfAPartitionInItsBox) {
  Random random(kSeed + 1);
  int legal = 0;
  for (int i = 0; i < 20000 && !testing::Test::HasFailure(); ++i) {
    const Request r = random_request(random);
    legal += expect_bounds(r, cases_of(r), 1, random);
  }
  EXPECT_GT(legal, 1000);
}

// The pattern is skewed, and the density of the request need not be that of the pattern.
TEST(LowerBound, IsNeverAboveTheCostWhereThePatternIsKnown) {
  Random random(kSeed + 4);
  int legal = 0;
  for (int i = 0; i < 3000 && !testing::Test::HasFailure(); ++i) {
    Request r = random_request(random);
    r.options.poplibs_parity = false;
    r.problem.density = 0.01 + 0.5 * random.unit();
    const PatternStats stats = draw_stats(r.problem, random);
    if (random.below(2) == 0) r.problem.density = random.unit();
    const CaseSet set = make_cases({r.problem, r.machine, r.options, &stats});
    legal += expect_bounds(r, set.cases, 8, random);
  }
  EXPECT_GT(legal, 1000);
}

TEST(BoundSearch, ExaminesOnlyAFewOfThePartitionsOfTheWholeChip) {
  Problem p;
  p.size = {1, 4096, 4096, 256};
  p.block = {16, 16};
  p.density = 1.0 / 16;
  const auto machine = device::machine_preset("gc200");
  const auto all = plan_with({p, machine, {}, nullptr}, rank_exhaustively);
  const auto few = plan_with({p, machine, {}, nullptr}, rank_by_bounds);
  expect_same(all, few);
  EXPECT_LT(few.evaluations * 10, all.evaluations);
}

}  // namespace
}  // namespace tessera::planner::internal
