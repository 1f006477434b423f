#include "tessera/planner/explain.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/random.hpp"
#include "tessera/planner/internal/planner_search.hpp"

// Every figure of an explanation against plain enumeration on small machines.
namespace tessera::planner {
namespace {

using internal::Case;
using testing::AllOf;
using testing::HasSubstr;

constexpr std::uint64_t kSeed = 41;

struct Request {
  Problem problem;
  device::Machine machine = device::machine_preset("gc200");
  Options options;
};

Request random_request(Random& random) {
  const std::int64_t sides[] = {1, 1, 4, 8, 16}, memory[] = {4096, 16384, 65536};
  const double densities[] = {0.01, 0.1, 0.5}, proportions[] = {0.1, 0.6, 1};
  Request r;
  const std::int64_t side = sides[random.below(5)];
  r.problem.block = {side, side};
  r.problem.size = {1 + random.below(8) / 7, side * (1 + random.below(24)),
                    side * (1 + random.below(24)), 4 * (1 + random.below(20))};
  r.problem.density = densities[random.below(3)];
  r.problem.data_type = random.below(2) == 0 ? DataType::Half : DataType::Float;
  r.problem.grad_a = random.below(2) == 0;
  r.problem.grad_w = random.below(2) == 0;
  r.machine.tiles = 2 + random.below(20);
  r.machine.tile_memory = Bytes(memory[random.below(3)]);
  r.options.available_memory_proportion = proportions[random.below(3)];
  r.options.shared_buckets = random.below(2) == 0;
  if (random.below(4) == 0) r.options.constraints.x = 1;
  if (random.below(6) == 0) r.options.poplibs_parity = true;
  return r;
}

Explanation explain_plan(const Request& r, const Plan& plan) {
  return explain(r.problem, r.machine, r.options, nullptr, plan);
}

template <class Visit>
void for_requests_with_plan(int count, Visit&& visit) {
  Random random(kSeed);
  for (int i = 0, seen = 0; seen < count; ++i) {
    ASSERT_LT(i, 50 * count);
    const Request r = random_request(random);
    const PlanResult result =
        internal::plan_with_buckets({r.problem, r.machine, r.options, nullptr});
    if (!result.has_plan) continue;
    ++seen;
    SCOPED_TRACE(testing::Message()
                 << "seed " << kSeed << " case " << i << ": " << to_string(r.problem) << " on "
                 << r.machine.tiles << " x " << r.machine.tile_memory.value);
    visit(r, result);
  }
}

// One partition of one case and the limits it keeps.
struct Point {
  std::size_t of_case = 0;
  Plan plan;
  bool words = false, temp = false, tile = false;

  bool legal() const { return words && temp && tile; }
  auto cost() const { return std::tuple(plan.cost.cycles, plan.cost.temp); }
};

std::vector<Point> all_points(const Request& r, const std::vector<Case>& cases, Bytes bound) {
  std::vector<Point> points;
  for (std::size_t i = 0; i < cases.size(); ++i)
    for (std::int64_t x = 1; x <= r.machine.tiles; ++x)
      for (std::int64_t y = 1; y <= r.machine.tiles; ++y)
        for (std::int64_t z = 1; z <= r.machine.tiles; ++z) {
          const Dims parts{r.problem.size.g, x, y, z};
          if (!internal::partition_is_legal(cases[i], parts)) continue;
          const internal::Cut cut = internal::make_cut(cases[i], parts);
          Point p{i, internal::make_plan(cases[i], parts)};
          p.words = internal::words_fit(cases[i], cut, internal::bucket_size(cases[i], cut));
          p.temp = p.plan.cost.temp <= bound;
          p.tile = r.options.poplibs_parity ||
                   p.plan.cost.temp + p.plan.cost.resident <= r.machine.tile_memory;
          points.push_back(p);
        }
  return points;
}

template <class Keeps>
Cycles fewest_cycles(const std::vector<Point>& points, Keeps&& keeps) {
  Cycles fewest(internal::kUnbounded);
  for (const Point& p : points)
    if (keeps(p)) fewest = std::min(fewest, p.plan.cost.cycles);
  return fewest;
}

const Lifted* find(const Explanation& e, LiftedLimit limit) {
  for (const Lifted& l : e.limits)
    if (l.limit == limit) return &l;
  return nullptr;
}

TEST(Explain, NamesTheThreeBestOtherPlans) {
  int full = 0;
  for_requests_with_plan(150, [&](const Request& r, const PlanResult& result) {
    const Explanation e = explain_plan(r, result.plan);
    EXPECT_EQ(e.temp_bound, result.memory_bound);
    const internal::CaseSet set = internal::make_cases({r.problem, r.machine, r.options, nullptr});
    std::vector<Point> points = all_points(r, set.cases, e.temp_bound);
    EXPECT_EQ(e.partitions, std::ssize(points));
    std::erase_if(points, [](const Point& p) { return !p.legal(); });
    std::ranges::stable_sort(points, {}, &Point::cost);
    ASSERT_FALSE(points.empty());
    EXPECT_EQ(points.front().plan, result.plan);
    ASSERT_EQ(e.runners_up.size(), std::min<std::size_t>(3, points.size() - 1));
    for (std::size_t i = 0; i < e.runners_up.size(); ++i)
      EXPECT_EQ(e.runners_up[i].plan, points[i + 1].plan) << i;
    full += e.runners_up.size() == 3;
  });
  EXPECT_GT(full, 80);
}

void expect_changes_add_up(const Alternative& a, const Plan& winner) {
  Cycles sum;
  for (const TermChange& t : a.terms) sum += t.more;
  EXPECT_EQ(sum, a.loses);
  EXPECT_EQ(a.plan.cost.cycles - winner.cost.cycles, a.loses);
  EXPECT_TRUE(std::ranges::is_sorted(a.terms, std::ranges::greater{}, &TermChange::more));
}

TEST(Explain, SplitsALossIntoTermsThatAddUp) {
  int differ = 0;
  for_requests_with_plan(100, [&](const Request& r, const PlanResult& result) {
    const Explanation e = explain_plan(r, result.plan);
    for (const Alternative& a : e.runners_up) {
      expect_changes_add_up(a, result.plan);
      differ += !a.terms.empty();
      EXPECT_GE(a.loses, Cycles(0));
    }
  });
  EXPECT_GT(differ, 100);
}

TEST(Explain, TellsTheBestOfEveryMethodOrWhatRulesItOut) {
  int worse = 0, ruled_out = 0, without_buckets = 0;
  for_requests_with_plan(200, [&](const Request& r, const PlanResult& result) {
    const Explanation e = explain_plan(r, result.plan);
    const internal::CaseSet set = internal::make_cases({r.problem, r.machine, r.options, nullptr});
    const std::vector<Point> points = all_points(r, set.cases, e.temp_bound);
    ASSERT_GE(e.methods_tried.size(), set.cases.size());
    if (e.methods_tried.size() > set.cases.size()) {
      ++without_buckets;
      const MethodVerdict& dense = e.methods_tried.back();
      EXPECT_TRUE(dense.methods.without_buckets);
      ASSERT_TRUE(dense.best);
      expect_changes_add_up(*dense.best, result.plan);
    }
    int chosen = 0;
    for (std::size_t i = 0; i < set.cases.size(); ++i) {
      const MethodVerdict& v = e.methods_tried[i];
      const Cycles best =
          fewest_cycles(points, [i](const Point& p) { return p.of_case == i && p.legal(); });
      ASSERT_EQ(v.best.has_value(), best.value != internal::kUnbounded);
      ASSERT_EQ(v.obstacle.has_value(), !v.best);
      chosen += v.chosen;
      if (v.obstacle) {
        ++ruled_out;
        if (v.obstacle->limit != LimitKind::Partition) {
          EXPECT_GT(v.obstacle->needed, v.obstacle->available);
        }
        continue;
      }
      EXPECT_EQ(v.best->plan.cost.cycles, best);
      expect_changes_add_up(*v.best, result.plan);
      if (v.chosen) {
        EXPECT_EQ(v.best->plan, result.plan);
      }
      worse += v.best->loses.value > 0;
    }
    EXPECT_EQ(chosen, 1);
  });
  EXPECT_GT(worse, 20);
  EXPECT_GT(ruled_out, 2);
  EXPECT_GT(without_buckets, 50);
}

TEST(Explain, MeasuresWhatEveryLimitCosts) {
  int temp = 0, tile = 0;
  for_requests_with_plan(300, [&](const Request& r, const PlanResult& result) {
    const Explanation e = explain_plan(r, result.plan);
    const internal::CaseSet set = internal::make_cases({r.problem, r.machine, r.options, nullptr});
    const std::vector<Point> points = all_points(r, set.cases, e.temp_bound);
    const auto gain = [&](auto keeps) {
      return result.plan.cost.cycles - fewest_cycles(points, keeps);
    };
    EXPECT_EQ(find(e, LiftedLimit::TemporaryMemory)->gain,
              gain([](const Point& p) { return p.words && p.tile; }));
    EXPECT_EQ(find(e, LiftedLimit::TileMemory)->gain, gain([](const Point& p) { return p.words; }));
    EXPECT_EQ(find(e, LiftedLimit::Words)->gain,
              gain([](const Point& p) { return p.temp && p.tile; }));
    temp += find(e, LiftedLimit::TemporaryMemory)->binds();
    tile += find(e, LiftedLimit::TileMemory)->binds();
    // PopSparse's doubling of the bound finds worse plans where a smaller bound holds one.
    for (const Lifted& l : e.limits)
      if (!r.options.poplibs_parity) {
        EXPECT_GE(l.gain, Cycles(0)) << to_string(l.limit);
      }
  });
  EXPECT_GT(temp, 3);
  EXPECT_GT(tile, 10);
}

TEST(Explain, PlansWithMoreTilesWithoutPinsAndWithTheOtherSharing) {
  int more = 0, twice = 0, pins = 0, sharing = 0;
  for_requests_with_plan(150, [&](const Request& r, const PlanResult& result) {
    const Explanation e = explain_plan(r, result.plan);
    const auto expect_gain = [&](LiftedLimit limit, const Request& changed) {
      const Plan other =
          internal::plan_with_buckets({changed.problem, changed.machine, changed.options, nullptr})
              .plan;
      const Lifted* l = find(e, limit);
      EXPECT_EQ(l->gain, std::max(Cycles(), result.plan.cost.cycles - other.cost.cycles))
          << to_string(limit);
      EXPECT_EQ(l->partition, other.partition);
      return l->binds();
    };
    Request changed = r;
    changed.machine.tiles = r.machine.tiles + 1;
    more += expect_gain(LiftedLimit::OneMoreTile, changed);
    changed.machine.tiles = r.machine.tiles * 2;
    twice += expect_gain(LiftedLimit::TwiceTheTiles, changed);
    changed = r;
    changed.options.constraints = {};
    ASSERT_EQ(find(e, LiftedLimit::Pins) != nullptr, r.options.constraints.x.has_value());
    if (r.options.constraints.x) pins += expect_gain(LiftedLimit::Pins, changed);
    changed = r;
    changed.options.shared_buckets.reset();
    changed.options.per_pass_plans = false;
    const Lifted* other = find(e, LiftedLimit::BucketSharing);
    if (!r.problem.is_element_wise() || !r.problem.grad_a) {
      EXPECT_EQ(other, nullptr);
    } else if (other != nullptr) {
      sharing += expect_gain(LiftedLimit::BucketSharing, changed);
    }
  });
  for (const int binding : {more, twice, pins, sharing}) EXPECT_GT(binding, 5);
}

bool shares_are_not_empty(std::int64_t grains, std::int64_t parts) {
  return share_of(grains, 1, parts, parts - 1).size() > 0;
}

TEST(Explain, SharesOutAllCyclesAndTellsWhatAFinerCutWouldChange) {
  int cuts = 0;
  for_requests_with_plan(100, [&](const Request& r, const PlanResult& result) {
    const Explanation e = explain_plan(r, result.plan);
    const internal::CaseSet set = internal::make_cases({r.problem, r.machine, r.options, nullptr});
    const auto same = [&](const MethodVerdict& v) { return v.chosen; };
    const std::size_t own =
        std::size_t(std::ranges::find_if(e.methods_tried, same) - e.methods_tried.begin());
    const Dims grains = set.cases[own].grains, at = result.plan.partition;
    Cycles sum;
    double share = 0;
    for (const TermShare& t : e.terms) {
      sum += t.cycles;
      share += t.share;
      EXPECT_EQ(std::ssize(t.finer_cut), (at.x < grains.x) + (at.y < grains.y) + (at.z < grains.z));
      for (const FinerCut& cut : t.finer_cut) {
        ++cuts;
        Dims parts = at;
        (cut.axis == Axis::X ? parts.x : cut.axis == Axis::Y ? parts.y : parts.z) = cut.to;
        const Plan finer = internal::make_plan(set.cases[own], parts);
        for (const CostTerm& term : finer.cost.find(t.pass)->terms)
          if (term.name == t.name) {
            EXPECT_EQ(cut.change, term.cycles - t.cycles);
          }
        for (std::int64_t skipped = cut.from + 1; skipped <= cut.to; ++skipped) {
          const bool legal = cut.axis == Axis::X        ? shares_are_not_empty(grains.x, skipped)
                             : cut.axis == Axis::Y      ? shares_are_not_empty(grains.y, skipped)
                             : r.options.poplibs_parity ? grains.z % skipped == 0
                                                        : shares_are_not_empty(grains.z, skipped);
          EXPECT_EQ(legal, skipped == cut.to);
        }
      }
    }
    EXPECT_EQ(sum, result.plan.cost.cycles);
    EXPECT_NEAR(share, 1, 1e-9);
  });
  EXPECT_GT(cuts, 500);
}

TEST(TermShare, IsDrivenByTheCutThatHelpsMostForEachTile) {
  TermShare t;
  EXPECT_EQ(t.driver(), nullptr);
  t.finer_cut = {{Axis::X, 10, 11, Cycles(0)}, {Axis::Y, 4, 5, Cycles(7)}};
  EXPECT_EQ(t.driver()->axis, Axis::Y);
  t.finer_cut = {
      {Axis::X, 10, 11, Cycles(-30)}, {Axis::Y, 4, 5, Cycles(7)}, {Axis::Z, 1, 2, Cycles(-100)}};
  EXPECT_EQ(t.driver()->axis, Axis::X);  // 30 for a tenth more tiles, 100 for twice as many
  t.finer_cut = {{Axis::X, 10, 11, Cycles(0)}};
  EXPECT_EQ(t.driver(), nullptr);
}

TEST(Explain, SaysWhenTheWidthOfWordsBinds) {
  Request r;
  r.machine.tiles = 2;
  r.machine.tile_memory = Bytes(1 << 30);
  r.problem.size = {1, 1024, 9000, 4};  // cutting x alone needs offsets of 8999 * 4 * 2
  r.problem.density = 0.01;
  r.options.constraints.use_dense = false;
  const Plan best = plan(r.problem, r.machine, r.options).plan;
  EXPECT_NE(best.partition, (Dims{1, 2, 1, 1}));
  const Explanation e = explain_plan(r, best);
  EXPECT_TRUE(find(e, LiftedLimit::Words)->binds());
  EXPECT_EQ(find(e, LiftedLimit::Words)->partition, (Dims{1, 2, 1, 1}));
}

TEST(Explain, ExplainsPlansWithStatisticsWithoutNonZerosAndCutShort) {
  Request r;
  r.problem = {.size = {1, 64, 96, 8}, .density = 0, .grad_a = true};
  r.options.constraints.use_dense = false;
  r.options.shared_buckets = true;
  r.options.operand_placement = Placement::AtHome;  // more tiles would share the arranging
  const Explanation empty = explain_plan(r, plan(r.problem, r.machine, r.options).plan);
  EXPECT_EQ(empty.plan.tiles_used(), 1);
  EXPECT_TRUE(empty.runners_up.empty());
  for (const Lifted& l : empty.limits)
    EXPECT_TRUE(!l.binds() || l.limit == LiftedLimit::BucketSharing) << to_string(l.limit);
  r.options = {};
  r.options.per_pass_plans = false;
  r.options.constraints.use_dense = false;

  r.problem.density = 0.1;
  PatternStats stats{{1, 1}, {}, {}};
  for (std::int32_t i = 0; i < 64; ++i) stats.row_counts.push_back(i % 20);
  stats.col_counts.assign(96, 6);
  const Plan counted = plan(r.problem, r.machine, r.options, &stats).plan;
  EXPECT_EQ(explain(r.problem, r.machine, r.options, &stats, counted).plan, counted);

  const Plan best = plan(r.problem, r.machine, r.options).plan;
  Plan other = explain_plan(r, best).runners_up.front().plan;
  const Explanation second = explain_plan(r, other);  // as if the search had stopped there
  EXPECT_EQ(second.runners_up.front().plan, best);
  EXPECT_LT(second.runners_up.front().loses, Cycles(1));
}

TEST(Explain, ExplainsBothLayoutsAndWhatOneWouldLose) {
  Request r;
  r.problem = {.size = {1, 512, 1024, 16}, .block = {8, 8}, .density = 0.0135};
  r.problem.grad_a = r.problem.grad_w = true;
  r.machine = device::machine_preset("gc200");
  r.options = sparse_options();
  const Plan two = plan(r.problem, r.machine, r.options).plan;
  ASSERT_EQ(two.backward.size(), 1u);
  const Explanation e = explain_plan(r, two);
  ASSERT_EQ(e.backward.size(), 1u);
  EXPECT_EQ(e.plan, two);
  EXPECT_EQ(e.backward[0].plan, two.backward[0]);
  r.options.per_pass_plans = false;
  EXPECT_EQ(e.one_layout_loses,
            plan(r.problem, r.machine, r.options).plan.cost.cycles - two.cost.cycles);
  EXPECT_THAT(to_text(e), HasSubstr("one layout for all passes loses"));
  EXPECT_THAT(to_json(e), HasSubstr("oneLayoutLoses"));
}

// The layers of training: half of them have a layout of GradA's own.
TEST(Explain, ExplainsThePlanThatRunsOfRandomTrainingLayers) {
  Random random(11);
  int with_two = 0;
  for (int trial = 0; trial < 200; ++trial) {
    Request r;
    const std::int64_t side = std::int64_t{1} << (random.below(3) == 0 ? 0 : 2 + random.below(3));
    r.problem = {.size = {1, 64 * (1 + random.below(8)), 64 * (1 + random.below(8)),
                          std::int64_t{4} << random.below(4)},
                 .block = {side, side},
                 .density = 0.01 + 0.15 * random.unit(),
                 .grad_a = true,
                 .grad_w = true};
    r.machine = device::machine_preset("gc200");
    r.machine.tiles = 64 << random.below(4);
    r.options = sparse_options();
    const PlanResult result = plan(r.problem, r.machine, r.options);
    if (!result.has_plan) continue;
    const Explanation e = explain_plan(r, result.plan);
    with_two += e.backward.empty() ? 0 : 1;
    EXPECT_EQ(e.plan, result.plan);
    Cycles sum;
    for (const TermShare& term : e.terms) sum += term.cycles;
    EXPECT_EQ(sum, result.plan.cost.cycles);
    if (!e.backward.empty()) {
      EXPECT_EQ(e.backward[0].plan, result.plan.backward[0]);
    }
    for (const Explanation* part : {&e, e.backward.empty() ? &e : &e.backward[0]}) {
      for (const Lifted& l : part->limits) EXPECT_GE(l.gain, Cycles(0)) << to_string(l.limit);
      for (const Alternative& other : part->runners_up) EXPECT_GE(other.loses, Cycles(0));
      for (const MethodVerdict& v : part->methods_tried)
        if (v.best) {
          EXPECT_GE(v.best->loses, Cycles(0)) << to_string(v.methods);
        }
    }
  }
  EXPECT_GT(with_two, 20);
}

TEST(Explain, RefusesAPlanOfAnotherRequest) {
  Request r;
  r.problem.size = {1, 64, 64, 16};
  r.options.constraints.use_dense = false;  // a dense plan serves any density
  const Plan own = plan(r.problem, r.machine, r.options).plan;
  Request other = r;
  other.problem.density = 0.5;
  EXPECT_THROW(explain_plan(other, own), Error);
  Plan changed = own;
  changed.cost.cycles += Cycles(1);
  EXPECT_THROW(explain_plan(r, changed), Error);
}

TEST(Explain, IsAValueAndPrintsItsFiguresAsTextAndAsJson) {
  Request r;
  r.problem = {.size = {1, 512, 512, 32}, .block = {16, 16}, .density = 0.1, .grad_w = true};
  r.options.constraints.use_dense = false;
  const Plan best = plan(r.problem, r.machine, r.options).plan;
  const Explanation e = explain_plan(r, best);
  EXPECT_EQ(e, explain_plan(r, best));
  const std::string text = to_text(e);
  const Alternative& second = e.runners_up.front();
  EXPECT_THAT(text,
              AllOf(HasSubstr(to_string(best.partition)), HasSubstr("exchange operands"),
                    HasSubstr("+" + std::to_string(second.loses.value) + " cycles"),
                    HasSubstr(to_string(second.plan.partition)), HasSubstr("twice the tiles")));
  const auto json = nlohmann::json::parse(to_json(e));
  EXPECT_EQ(json["cycles"], best.cost.cycles.value);
  EXPECT_EQ(json["runnersUp"][0]["loses"], second.loses.value);
  EXPECT_EQ(json["terms"].size(), e.terms.size());
  EXPECT_EQ(json["methodsTried"].size(), e.methods_tried.size());
  EXPECT_EQ(json["limits"].size(), e.limits.size());
}

}  // namespace
}  // namespace tessera::planner
