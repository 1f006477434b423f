#include "tessera/planner/no_fit.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/planner/internal/nearest.hpp"
#include "tessera/planner/internal/planner_search.hpp"
#include "tessera/planner/internal/relaxations.hpp"
#include "tessera/tests/planner/requests_without_plan.hpp"

// Figures of failures against plain enumeration: every partition, every value of what is relaxed.
namespace tessera::planner {
namespace {

using internal::Case;
using testing::AllOf;
using testing::HasSubstr;

bool fits(const Request& r) { return plan(r.problem, r.machine, r.options).has_plan; }

// The smallest worst need, as a multiple of what there is, of all partitions of a case; of equal
// ones the fewest cycles.
std::pair<double, Cycles> nearest(const Case& c, std::int64_t bound) {
  std::pair<double, Cycles> least{INFINITY, 0};
  for (std::int64_t x = 1; x <= c.machine.tiles; ++x)
    for (std::int64_t y = 1; y <= c.machine.tiles; ++y)
      for (std::int64_t z = 1; z <= c.machine.tiles; ++z) {
        const Dims parts{c.grains.g, x, y, z};
        if (!internal::partition_is_legal(c, parts)) continue;
        const PlanCost cost = internal::make_plan(c, parts).cost;
        const double temp = double(cost.temp.value) / double(bound);
        const double tile =
            double((cost.temp + cost.resident).value) / double(c.machine.tile_memory.value);
        const internal::Cut cut = internal::make_cut(c, parts);
        const auto bucket = internal::bucket_size(c, cut);
        const double words = double(internal::largest_stored(c, cut, bucket).value) /
                             double(internal::most_in_word(c));
        least = std::min(least, {std::max({temp, tile, words}), cost.cycles});
      }
  return least;
}

TEST(LeastFitting, FindsEveryThresholdWithFewTries) {
  for (std::int64_t none = -1; none < 3; ++none)
    for (std::int64_t most = none; most < 40; ++most)
      for (std::int64_t threshold = none + 1; threshold < 42; ++threshold) {
        int tries = 0;
        const auto found = least_fitting(none, most, [&](std::int64_t value) {
          ++tries;
          EXPECT_GT(value, none);
          EXPECT_LE(value, most);
          return value >= threshold;
        });
        ASSERT_EQ(found, threshold <= most ? std::optional(threshold) : std::nullopt);
        EXPECT_LE(tries, 12);
      }
}

TEST(NoFit, NamesTheNearestPartitionOfEveryMethod) {
  for_requests_without_plan(60, [](const Request& r) {
    const NoFit n = explain_no_fit(r.problem, r.machine, r.options);
    const internal::CaseSet set = internal::make_cases({r.problem, r.machine, r.options, nullptr});
    const std::int64_t bound = internal::temp_bounds(r.machine, r.options).back();
    ASSERT_EQ(n.methods.size(), set.cases.size());
    double least = INFINITY;
    for (std::size_t i = 0; i < set.cases.size(); ++i) {
      const Obstacle& o = n.methods[i];
      const auto [excess, cycles] = nearest(set.cases[i], bound);
      EXPECT_DOUBLE_EQ(double(o.needed) / double(o.available), excess);
      EXPECT_GT(o.needed, o.available);
      EXPECT_EQ(internal::make_plan(set.cases[i], o.partition).cost.cycles, cycles);
      least = std::min(least, excess);
    }
    EXPECT_DOUBLE_EQ(double(n.tightest.needed) / double(n.tightest.available), least);
  });
}

TEST(NoFit, BreaksDownWhatLiesOnATile) {
  for_requests_without_plan(60, [](const Request& r) {
    const NoFit n = explain_no_fit(r.problem, r.machine, r.options);
    const internal::CaseSet set = internal::make_cases({r.problem, r.machine, r.options, nullptr});
    for (std::size_t i = 0; i < set.cases.size(); ++i) {
      const Obstacle& o = n.methods[i];
      const Plan at = internal::make_plan(set.cases[i], o.partition);
      EXPECT_EQ(o.tile.total(), at.cost.temp + at.cost.resident);
      EXPECT_EQ(o.tile.step, at.cost.temp);
      EXPECT_EQ(at.cost.find(o.tile.pass)->temp(), at.cost.temp);
      const std::int64_t copies = r.problem.grad_w ? 2 : 1;  // values and their gradient
      EXPECT_EQ(o.tile.values,
                Bytes(copies * at.nonzeros_per_bucket * bytes_of(r.problem.data_type)));
      EXPECT_EQ(o.tile.meta_info.value, 2 * (at.fwd_meta_words + at.grad_a_meta_words).value);
      // Q and S once, dQ and dS where a pass has them, in even shares.
      EXPECT_GE(o.tile.operands.value * at.tiles_used(),
                r.problem.size.g * (r.problem.size.x + r.problem.size.y) * r.problem.size.z *
                    bytes_of(r.problem.data_type));
      if (o.limit == LimitKind::TileMemory) {
        EXPECT_EQ(Bytes(o.needed), o.tile.total());
      }
    }
  });
}

TEST(NoFit, FindsTheLeastNumberOfTiles) {
  int found = 0;
  for_requests_without_plan(40, [&](Request r) {
    const NoFit n = explain_no_fit(r.problem, r.machine, r.options);
    const Relaxation* more = find(n, RelaxationKind::MoreTiles);
    const std::int64_t tried = more == nullptr ? 40 : more->tiles;
    for (r.machine.tiles += 1; r.machine.tiles < std::min<std::int64_t>(tried, 200);
         ++r.machine.tiles)
      ASSERT_FALSE(fits(r)) << r.machine.tiles;
    if (more == nullptr) return;
    ++found;
    r.machine.tiles = more->tiles;
    EXPECT_EQ(plan(r.problem, r.machine, r.options).plan.cost.cycles, more->total_cycles);
  });
  EXPECT_GT(found, 10);
}

TEST(NoFit, TriesNoMoreTilesThanTheChipHas) {
  Request r;
  r.problem = {.size = {1, 1024, 1024, 4096}, .density = 0.1};
  r.options = sparse_options();
  r.machine.tiles = 64;
  const NoFit of_part = explain_no_fit(r.problem, r.machine, r.options);
  ASSERT_NE(find(of_part, RelaxationKind::MoreTiles), nullptr);
  EXPECT_LE(find(of_part, RelaxationKind::MoreTiles)->tiles, device::machine_preset("gc200").tiles);
  r.machine = device::machine_preset("gc200");
  r.problem.size.z = 1 << 20;
  const NoFit of_all = explain_no_fit(r.problem, r.machine, r.options);
  EXPECT_EQ(find(of_all, RelaxationKind::MoreTiles), nullptr);
  EXPECT_EQ(std::ranges::count(of_all.no_help, RelaxationKind::MoreTiles), 0);
}

TEST(NoFit, TriesAnyNumberOfTilesOfAMachineThatSomebodyDescribed) {
  Request r;
  r.problem = {.size = {1, 1024, 1024, 4096}, .density = 0.1};
  r.options = sparse_options();
  r.machine.tiles = 16;
  r.machine.name = "mine";
  const NoFit no_fit = explain_no_fit(r.problem, r.machine, r.options);
  ASSERT_NE(find(no_fit, RelaxationKind::MoreTiles), nullptr);
  r.machine.tiles = find(no_fit, RelaxationKind::MoreTiles)->tiles;
  EXPECT_TRUE(fits(r));
}

TEST(NoFit, FindsTheLargestDensityToAThousandthOfTheLayers) {
  int found = 0;
  for_requests_without_plan(200, [&](Request r) {
    const NoFit n = explain_no_fit(r.problem, r.machine, r.options);
    const Relaxation* lower = find(n, RelaxationKind::LowerDensity);
    const double asked = r.problem.density;
    r.problem.density = lower == nullptr ? asked / 1000 : lower->density + asked * 0.0021;
    if (r.problem.density < asked) {
      EXPECT_FALSE(fits(r)) << r.problem.density;
    }
    if (lower == nullptr) return;
    ++found;
    EXPECT_LT(lower->density, asked);
    r.problem.density = lower->density;
    EXPECT_EQ(plan(r.problem, r.machine, r.options).plan.cost.cycles, lower->total_cycles);
  });
  EXPECT_GT(found, 1);  // most layers have too little memory for any density
}

TEST(NoFit, NamesTheDensePlanOfALayerThatMayNotRunDense) {
  Request r;
  r.problem = {.size = {1, 1024, 1024, 4096}, .density = 0.1};
  r.options = sparse_options();
  r.machine.tiles = 64;
  const NoFit n = explain_no_fit(r.problem, r.machine, r.options);
  const Relaxation* dense = find(n, RelaxationKind::RunDense);
  ASSERT_NE(dense, nullptr);
  r.options.constraints.use_dense = true;
  const Plan plan = plan_or_throw(r.problem, r.machine, r.options);
  EXPECT_TRUE(plan.dense.has_value());
  EXPECT_EQ(dense->total_cycles, plan.cost.cycles);
  EXPECT_THAT(to_text(n), HasSubstr("R dense (planConstraints.useDense true): "));
}

TEST(NoFit, FindsTheLargestBatchAndTheFewestParts) {
  int smaller = 0, in_parts = 0;
  for_requests_without_plan(120, [&](Request r) {
    const std::int64_t all = r.problem.size.z;
    const NoFit n = explain_no_fit(r.problem, r.machine, r.options);
    std::vector<bool> fitting(std::size_t(all + 1), false);
    for (std::int64_t z = 1; z < all; ++z) {
      r.problem.size.z = z;
      fitting[std::size_t(z)] = fits(r);
    }
    const auto last = std::find(fitting.rbegin(), fitting.rend(), true);
    const std::int64_t largest = fitting.rend() - last - 1;
    const Relaxation* batch = find(n, RelaxationKind::SmallerBatch);
    ASSERT_EQ(batch != nullptr, last != fitting.rend());
    const Relaxation* parts = find(n, RelaxationKind::BatchInParts);
    if (batch == nullptr) {
      EXPECT_EQ(parts, nullptr);
      return;
    }
    ++smaller;
    EXPECT_EQ(batch->batch, largest);
    EXPECT_EQ(batch->runs, ceil_div(all, largest));
    if (parts == nullptr) return;
    ++in_parts;
    r.problem.size.z = parts->batch;
    EXPECT_EQ(parts->total_cycles,
              parts->runs * plan(r.problem, r.machine, r.options).plan.cost.cycles);
    EXPECT_GE(parts->runs * parts->batch, all);
    EXPECT_LT((parts->runs - 1) * parts->batch, all);
    const std::int64_t grain =
        r.problem.is_element_wise() ? r.machine.vector_width(r.problem.data_type) : 1;
    for (std::int64_t fewer = 2; fewer < parts->runs; ++fewer) {
      const std::int64_t even = ceil_div(ceil_div(all, grain), fewer) * grain;
      if (even > parts->batch && even < all) {
        EXPECT_FALSE(fitting[std::size_t(even)]) << fewer;
      }
    }
  });
  EXPECT_GT(smaller, 10);
  EXPECT_GT(in_parts, 10);
}

TEST(NoFit, FindsTheLeastProportionToFourDecimals) {
  int found = 0, no_help = 0;
  for_requests_without_plan(80, [&](Request r) {
    const NoFit n = explain_no_fit(r.problem, r.machine, r.options);
    const Relaxation* memory = find(n, RelaxationKind::MoreMemory);
    ++(memory != nullptr ? found : no_help);
    if (memory == nullptr) {
      r.options.available_memory_proportion = 1;
      EXPECT_FALSE(fits(r));
      return;
    }
    r.options.available_memory_proportion = memory->memory_proportion;
    EXPECT_TRUE(fits(r));
    r.options.available_memory_proportion -= 0.0001;
    EXPECT_FALSE(fits(r));
  });
  EXPECT_GT(found, 5);
  EXPECT_GT(no_help, 5);
}

TEST(Relaxer, RoundsProportionsUpAndNeverFurther) {
  internal::Asked asked{
      {.size = {1, 8, 8, 4}, .density = 0.1}, device::machine_preset("gc200"), {}};
  asked.machine.tile_memory = Bytes(10000);
  asked.options.available_memory_proportion = 0.00001;
  internal::Relaxer relaxer(asked);
  const auto allowed = [](double proportion) { return std::floor(10000 * proportion); };
  for (std::int64_t least = 2000; least < 3200; ++least) {
    const auto r = relaxer.more_memory(Bytes(least));
    ASSERT_TRUE(r.has_value()) << least;
    const double step_less = (std::round(r->memory_proportion * 10000) - 1) / 10000;
    EXPECT_GE(allowed(r->memory_proportion), double(least));
    EXPECT_LT(allowed(step_less), double(least));
  }
}

TEST(NoFit, TriesTheBlocksTheKernelsHave) {
  int found = 0;
  for_requests_without_plan(120, [&](Request r) {
    const NoFit n = explain_no_fit(r.problem, r.machine, r.options);
    const std::int64_t own = r.problem.block.rows;
    for (const std::int64_t side : {1, 4, 8, 16}) {
      r.problem.block = {side, side};
      const bool legal = side != own && r.problem.size.x % side == 0 &&
                         r.problem.size.y % side == 0 &&
                         !(side == 16 && r.problem.data_type == DataType::Float);
      const bool listed = std::ranges::any_of(n.relaxations, [&](const Relaxation& one) {
        return one.kind == RelaxationKind::OtherBlock && one.block == r.problem.block;
      });
      EXPECT_EQ(listed, legal && fits(r)) << side;
      found += listed;
    }
  });
  EXPECT_GT(found, 3);
}

TEST(NoFit, CallsTheRelaxationWithFewestCyclesForTheWholeBatchTheCheapest) {
  for_requests_without_plan(60, [](const Request& r) {
    const NoFit n = explain_no_fit(r.problem, r.machine, r.options);
    const bool any = std::ranges::any_of(n.relaxations, [](const Relaxation& one) {
      return one.kind != RelaxationKind::LowerDensity;
    });
    ASSERT_EQ(n.cheapest.has_value(), any);
    for (const Relaxation& one : n.relaxations) {
      EXPECT_EQ(one.total_cycles, one.runs * one.cycles);
      if (one.kind == RelaxationKind::LowerDensity) continue;  // that is less work
      EXPECT_GE(one.total_cycles, n.relaxations[*n.cheapest].total_cycles);
    }
    EXPECT_EQ(n, explain_no_fit(r.problem, r.machine, r.options));
    EXPECT_LT(n.plans_made, 500);
  });
}

TEST(NoFit, NamesTheNumberThatDoesNotFitAWord) {
  Request r;
  r.machine.tiles = 1;
  r.machine.tile_memory = Bytes(1 << 30);
  r.problem.size = {1, 8, 8192, 8};
  r.problem.density = 0.1;
  r.options = sparse_options();
  const NoFit n = explain_no_fit(r.problem, r.machine, r.options);
  EXPECT_EQ(n.tightest.limit, LimitKind::Words);
  EXPECT_EQ(n.tightest.what, "offset of a column's row of S");
  EXPECT_EQ(n.tightest.needed, 8191 * 8 * 2);
  EXPECT_EQ(n.tightest.available, 65535);
  EXPECT_EQ(find(n, RelaxationKind::MoreTiles)->tiles, 2);
  EXPECT_EQ(find(n, RelaxationKind::BatchInParts)->runs, 2);
  EXPECT_THAT(plan(r.problem, r.machine, r.options).reason,
              AllOf(HasSubstr("16 bits"), HasSubstr("is 131056, a word holds 65535")));
}

TEST(NoFit, TellsOfPinsThatLeaveAMethodWithoutPartition) {
  Request r;
  r.problem = {.size = {1, 64, 64, 80}, .block = {16, 16}, .density = 0.5, .grad_w = true};
  r.options.constraints.z = 8;  // a share count of 80 columns, but not of 5 times 16
  r.options.constraints.use_dense = false;
  r.machine.tile_memory = Bytes(1024);
  const NoFit n = explain_no_fit(r.problem, r.machine, r.options);
  ASSERT_EQ(n.methods.size(), 4u);
  EXPECT_EQ(n.methods[0].limit, LimitKind::TemporaryMemory);
  EXPECT_EQ(n.methods[2].methods.grad_w, Method::BlockGradWAmp);
  EXPECT_EQ(n.methods[2].limit, LimitKind::Partition);
  EXPECT_THAT(to_text(n), HasSubstr("no partition has the pinned counts"));
}

TEST(NoFit, LeavesOutPinsWhenTheyAreInTheWay) {
  Request r;
  r.problem.size = {1, 512, 512, 256};
  r.options.constraints = {1, 1, 1, {}, {}};
  const NoFit n = explain_no_fit(r.problem, r.machine, r.options);
  ASSERT_NE(find(n, RelaxationKind::NoPins), nullptr);
  EXPECT_EQ(find(n, RelaxationKind::NoPins)->total_cycles,
            plan(r.problem, r.machine).plan.cost.cycles);
  r.options.constraints = {};
  r.machine.tiles = 1;
  EXPECT_EQ(find(explain_no_fit(r.problem, r.machine), RelaxationKind::NoPins), nullptr);
}

// A sparse layer that fits is pinned to dense blocks, which do not.
TEST(NoFit, TriesARequestThatPinsOnlyDenseBlocksWithoutThatPin) {
  Request r;
  r.problem = {.size = {1, 4096, 4096, 16}, .density = 0.01};
  r.machine.tiles = 16;
  r.options.constraints.use_dense = true;
  const NoFit n = explain_no_fit(r.problem, r.machine, r.options);
  ASSERT_NE(find(n, RelaxationKind::NoPins), nullptr);
  EXPECT_EQ(find(n, RelaxationKind::NoPins)->total_cycles,
            plan(r.problem, r.machine).plan.cost.cycles);
}

TEST(NoFit, IsRefusedWhenThereIsAPlan) {
  Request r;
  r.problem.size = {1, 64, 64, 8};
  EXPECT_THROW(explain_no_fit(r.problem, r.machine), Error);
}

TEST(NoFit, PrintsItsFiguresAsText) {
  Request r;
  r.problem = {.size = {1, 1024, 1024, 512}, .density = 0.1, .grad_w = true};
  r.machine.tiles = 16;
  const NoFit n = explain_no_fit(r.problem, r.machine, sparse_options());
  const Relaxation& cheapest = n.relaxations.at(n.cheapest.value());
  EXPECT_THAT(to_text(n), AllOf(HasSubstr(to_string(n.tightest)),
                                HasSubstr(to_string(cheapest) + "  <- cheapest"),
                                HasSubstr(std::to_string(n.tightest.tile.total().value))));
}

// Sanitizers see what would leave 64 bits.
TEST(NoFit, TakesTheLargestLayersThereAre) {
  constexpr std::int64_t kMost = 2147483647;
  for (const Dims size : {Dims{1, 1, 1, kMost}, Dims{1, kMost, 1, 1 << 21}, Dims{1, 1, kMost, 1},
                          Dims{64, 1 << 23, 1 << 23, 1}, Dims{1, 1 << 20, 1 << 21, 1 << 11}})
    for (const double density : {1e-12, 1.0}) {
      Request r;
      r.machine.tiles = 64;
      r.problem.size = size;
      r.problem.density = density;
      r.problem.grad_a = r.problem.grad_w = true;
      SCOPED_TRACE(to_string(r.problem));
      const BestEffort effort = plan_best_effort(r.problem, r.machine);
      if (effort.result.status == PlanStatus::Found) continue;
      const NoFit n = explain_no_fit(r.problem, r.machine);
      EXPECT_GT(n.tightest.needed, n.tightest.available);
      for (const Relaxation& one : n.relaxations) EXPECT_GT(one.total_cycles, Cycles(0));
      EXPECT_LT(n.plans_made, 2000);
    }
}

}  // namespace
}  // namespace tessera::planner
