#include "tessera/planner/planner.hpp"

#include <gmock/gmock.h>

#include <cstdint>
#include <string>

#include "tessera/base/error.hpp"
#include "tessera/base/random.hpp"
#include "tessera/planner/internal/planner_search.hpp"
#include "tessera/planner/plan_bounds.hpp"

// The default mode: everything priced, nothing as PopLibs does it.
namespace tessera::planner {
namespace {

using testing::AllOf;
using testing::HasSubstr;

device::Machine gc200(std::int64_t tiles = 1472) {
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = tiles;
  return machine;
}

Problem layer(Dims size, BlockShape block = {1, 1}, double density = 0.1) {
  Problem p;
  p.size = size;
  p.block = block;
  p.density = density;
  return p;
}

Problem all_passes(Problem p) {
  p.grad_a = p.grad_w = true;
  return p;
}

std::vector<Problem> many_layers() {
  return {layer({1, 256, 512, 64}),
          all_passes(layer({1, 256, 512, 64})),
          all_passes(layer({2, 96, 80, 5})),
          layer({1, 1, 1, 1}, {1, 1}, 1),
          layer({1, 7, 13, 3}, {7, 13}, 1),
          all_passes(layer({1, 40, 36, 17}, {5, 3}, 0.2)),
          all_passes(layer({1, 512, 512, 16}, {16, 16}, 0.05)),
          all_passes(layer({1, 512, 256, 32}, {8, 8}, 0.3)),
          layer({1, 96, 96, 33}, {32, 32}, 0.5),
          all_passes(layer({1, 90, 77, 33}, {16, 16}, 0.2)),
          layer({1, 64, 64, 8}, {1, 4}, 0.25)};
}

// Checks the buckets of a plan against sizes that are computed here.
void expect_sound_buckets(const Problem& p, const Plan& plan) {
  EXPECT_TRUE(plan.use_dense || p.block.rows % plan.block.rows == 0);
  EXPECT_TRUE(plan.use_dense || p.block.cols % plan.block.cols == 0);
  const Dims padded = ceil_div(p.size_in_blocks(), plan.grain) * plan.grain, parts = plan.partition;
  EXPECT_GT(share_of(padded.x, plan.grain.x, parts.x, parts.x - 1).size(), 0);
  EXPECT_GT(share_of(padded.y, plan.grain.y, parts.y, parts.y - 1).size(), 0);
  EXPECT_GT(share_of(padded.z, plan.grain.z, parts.z, parts.z - 1).size(), 0);
  const double expected = p.density * static_cast<double>(p.size.g * p.size.x * p.size.y);
  EXPECT_GE(static_cast<double>(plan.nonzeros_per_bucket * plan.tiles_used()), expected);
  EXPECT_GT(plan.fwd_meta_words.value, 0);
}

// Checks what holds for every plan.
void expect_sound(const Problem& p, const device::Machine& m, const Options& o, const Plan& plan) {
  EXPECT_LE(plan.tiles_used(), m.tiles);
  EXPECT_EQ(plan.partition.g, p.size.g);
  EXPECT_LE(static_cast<double>(plan.cost.temp.value),
            o.available_memory_proportion * static_cast<double>(m.tile_memory.value));
  EXPECT_LE(plan.cost.temp + plan.cost.resident, m.tile_memory);
  Cycles sum;
  for (const PassCost& pass : plan.cost.passes) sum += pass.cycles();
  EXPECT_EQ(sum, plan.cost.cycles);
  EXPECT_EQ(plan.cost.passes.size(), 1u + p.grad_a + p.grad_w);
  if (!plan.dense) expect_sound_buckets(p, plan);
}

TEST(Plan, IsSoundForLayersOfEveryKind) {
  for (const Problem& p : many_layers())
    for (const std::int64_t tiles : {2, 24, 1472}) {
      SCOPED_TRACE(to_string(p) + " on " + std::to_string(tiles));
      const device::Machine machine = gc200(tiles);
      for (const PlanResult& result :
           {plan(p, machine), internal::plan_with_buckets({p, machine, {}, nullptr})}) {
        ASSERT_EQ(result.status, PlanStatus::Found) << result.reason;
        expect_sound(p, machine, {}, result.plan);
      }
    }
}

TEST(Plan, HasNoCheaperLegalNeighbour) {
  for (const Problem& p : many_layers()) {
    SCOPED_TRACE(to_string(p));
    const Plan best = plan(p, gc200(64)).plan;
    for (const internal::Candidate& candidate : internal::candidates(p, gc200(64), {})) {
      const internal::Case c = internal::make_case(p, gc200(64), {}, candidate, nullptr);
      for (std::int64_t x = -2; x <= 2; ++x)
        for (std::int64_t y = -2; y <= 2; ++y)
          for (std::int64_t z = 1; z <= 4; ++z) {
            const Dims at = best.partition;
            const Dims near{at.g, std::max<std::int64_t>(1, at.x + x),
                            std::max<std::int64_t>(1, at.y + y), z};
            if (!internal::partition_is_legal(c, near)) continue;
            const internal::PartsCost cost = internal::cost_of(c, near);
            EXPECT_FALSE(cost.legal && cost.cycles < best.cost.cycles.value) << to_string(near);
          }
    }
  }
}

TEST(Plan, IsTheSameEveryTime) {
  for (const Problem& p : many_layers()) EXPECT_EQ(plan(p, gc200()).plan, plan(p, gc200()).plan);
}

TEST(Plan, WorksForALayerWithoutNonZeros) {
  for (const BlockShape block : {BlockShape{1, 1}, BlockShape{4, 4}}) {
    const Problem p = all_passes(layer({1, 64, 64, 8}, block, 0));
    const PlanResult result = plan(p, gc200());
    ASSERT_EQ(result.status, PlanStatus::Found) << result.reason;
    EXPECT_GE(result.plan.fwd_meta_words.value, 1);  // the end marker
    Options parity;
    parity.poplibs_parity = true;
    EXPECT_TRUE(plan(p, gc200(), parity).has_plan);
  }
}

TEST(Plan, NeverExceedsTheMemoryItWasGiven) {
  // In parity mode this layer's bound is doubled, see GoldenPlans.G7.
  Problem p = layer({1, 4096, 4096, 4096}, {16, 16}, 1.0 / 16);
  p.partials_type = DataType::Half;
  const PlanResult result = plan(p, gc200());
  ASSERT_EQ(result.status, PlanStatus::Found) << result.reason;
  expect_sound(p, gc200(), {}, result.plan);
  EXPECT_LE(result.memory_bound, gc200().tile_memory);
}

TEST(Plan, SaysHowMuchMemoryIsMissing) {
  device::Machine small = gc200(4);
  small.tile_memory = Bytes(64 * 1024);
  const Problem p = layer({1, 1024, 1024, 64});
  const PlanResult result = plan(p, small);
  EXPECT_EQ(result.status, PlanStatus::NoPlan);
  EXPECT_FALSE(result.has_plan);
  EXPECT_GT(result.least_temp, result.memory_bound);
  EXPECT_THAT(result.reason, AllOf(HasSubstr(std::to_string(result.least_temp.value)),
                                   HasSubstr("availableMemoryProportion 0.6")));
  EXPECT_THROW(plan_or_throw(p, small), Error);
}

TEST(Plan, KeepsColumnWordsInsideSixteenBits) {
  // On one tile (y - 1) * z * 2 would be 8191 * 8 * 2 = 131056.
  device::Machine m = gc200(1);
  m.tile_memory = Bytes(1 << 30);
  const auto buckets = [&m](Dims size) {
    return internal::plan_with_buckets({layer(size), m, {}, nullptr}).status;
  };
  EXPECT_EQ(buckets({1, 8, 8192, 8}), PlanStatus::NoPlan);
  EXPECT_EQ(buckets({1, 8, 4096, 8}), PlanStatus::Found);  // 65520 fits
  m.word_bits = 32;
  EXPECT_EQ(buckets({1, 8, 8192, 8}), PlanStatus::Found);
}

TEST(Plan, KeepsBlockRecordsInsideSixteenBits) {
  device::Machine m = gc200(1);
  m.tile_memory = Bytes(1 << 30);
  Options tight;
  tight.meta_info_bucket_oversize_proportion = 0;
  const auto blocks_on_one_tile = [&](std::int64_t n) {
    return internal::plan_with_buckets({layer({1, 16 * n, 16, 1}, {16, 16}, 1), m, tight, nullptr});
  };
  EXPECT_EQ(blocks_on_one_tile(255).status, PlanStatus::Found);
  EXPECT_EQ(blocks_on_one_tile(256).status, PlanStatus::NoPlan);
  EXPECT_THAT(blocks_on_one_tile(256).reason, HasSubstr("16 bits"));
}

PatternStats skewed_stats(std::int64_t rows, std::int64_t cols, std::int32_t full_rows) {
  PatternStats stats;
  stats.row_counts.assign(std::size_t(rows), 0);
  for (std::int32_t r = 0; r < full_rows; ++r)
    stats.row_counts[std::size_t(r)] = static_cast<std::int32_t>(cols);
  stats.col_counts.assign(std::size_t(cols), full_rows);
  return stats;
}

TEST(Plan, MakesRoomForAPatternThatIsLargerThanItsDensitySays) {
  const Problem p = layer({1, 256, 256, 16}, {1, 1}, 0.01);
  const PatternStats stats = skewed_stats(256, 256, 64);  // a quarter of all, not a hundredth
  Options sparse;
  sparse.constraints.use_dense = false;
  const Plan without = plan(p, gc200(24), sparse).plan;
  const Plan with = plan(p, gc200(24), sparse, &stats).plan;
  EXPECT_LT(without.nonzeros_per_bucket * without.tiles_used(), stats.blocks());
  EXPECT_GE(with.nonzeros_per_bucket * with.tiles_used(), stats.blocks());
  EXPECT_GE(with.fwd_meta_words.value * with.tiles_used(), stats.blocks());
  PatternStats wrong = stats;
  wrong.row_counts.pop_back();
  EXPECT_THROW(plan(p, gc200(24), {}, &wrong), Error);
}

TEST(Plan, ObeysPins) {
  Options o;
  o.constraints = {6, 4, 2, true, true};
  const Plan pinned = plan(all_passes(layer({1, 512, 512, 64})), gc200(48), o).plan;
  EXPECT_EQ(pinned.partition, (Dims{1, 6, 4, 2}));
  EXPECT_TRUE(pinned.grad_w_exchange_buckets);
  EXPECT_TRUE(pinned.use_dense);
}

TEST(Plan, LeavesTheRearrangingMethodOutWhereItsKernelIsOff) {
  Problem p = all_passes(layer({1, 544, 512, 16}, {16, 16}, 0.1));
  p.data_type = DataType::Half;
  Options off;
  off.enable_structured_rearrangements = false;
  EXPECT_EQ(plan(p, gc200(24)).plan.grad_w, Method::BlockGradWAmp);
  const Plan without = plan(p, gc200(24), off).plan;
  EXPECT_EQ(without.grad_w, Method::BlockGradW);
  EXPECT_EQ(without.cost.find(Pass::GradW)->terms[1].name, Term::RearrangeOperands);
  EXPECT_EQ(without.cost.find(Pass::GradW)->terms[1].cycles, Cycles(0));
}

std::string message_of(const Problem& p, const device::Machine& m, const Options& o = {}) {
  try {
    plan(p, m, o);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
    return error.what();
  }
  return "accepted";
}

TEST(Plan, RefusesPinsThatCannotBe) {
  const auto pinned = [](PlanConstraints pins) {
    Options o;
    o.constraints = pins;
    o.constraints.use_dense = false;
    return message_of(layer({1, 49, 64, 16}), gc200(100), o);
  };
  EXPECT_THAT(pinned({101, {}, {}, {}, {}}), HasSubstr("partition.x is 101; it must be in 1..100"));
  EXPECT_THAT(pinned({0, {}, {}, {}, {}}), HasSubstr("partition.x is 0"));
  EXPECT_THAT(pinned({8, {}, {}, {}, {}}), HasSubstr("nearest legal values are 7 or 9"));
  EXPECT_THAT(pinned({{}, 65, {}, {}, {}}), HasSubstr("partition.y is 65"));
  EXPECT_THAT(pinned({{}, {}, 3, {}, {}}), HasSubstr("partition.z is 3"));
  EXPECT_THAT(pinned({7, 16, {}, {}, {}}), HasSubstr("needs 112 tiles"));
}

TEST(Plan, RefusesLayersAndMachinesThatCannotBe) {
  EXPECT_THAT(message_of(layer({1, 8, 8, 8}), gc200(0)), HasSubstr("tiles is 0"));
  EXPECT_THAT(message_of(layer({1, 0, 8, 8}), gc200()), HasSubstr("output size x is 0"));
  EXPECT_THAT(message_of(layer({1, 8, 8, 0}), gc200()), HasSubstr("batch size z is 0"));
  EXPECT_THAT(message_of(layer({1, 8, 8, 8}, {1, 1}, 1.5), gc200()), HasSubstr("density is 1.5"));
  EXPECT_THAT(message_of(layer({1, 8, 8, 8}, {1, 1}, -0.1), gc200()), HasSubstr("0..1"));
  EXPECT_THAT(message_of(layer({3, 8, 8, 8}), gc200(2)), HasSubstr("groups is 3"));
  EXPECT_TRUE(plan(layer({2, 8, 8, 8}), gc200(2)).has_plan) << "a tile for each group";
  Problem narrow = layer({1, 8, 8, 8});
  narrow.partials_type = DataType::Half;
  EXPECT_TRUE(plan(narrow, gc200()).has_plan);
  Options parity;
  parity.poplibs_parity = true;
  try {
    plan(narrow, gc200(), parity);
    FAIL() << "PopLibs has no element kernels with half sums";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("float partials only in PopLibs"));
  }
}

// Half sums halve the bytes of partials, which cost memory, exchange and reductions; a kernel takes
// as long as with float sums, so a plan is never dearer.
TEST(Plan, TakesHalfSumsOfElementsForLessThanFloatSums) {
  Problem p = layer({1, 512, 2048, 256}, {1, 1}, 0.05);
  p.data_type = DataType::Half;
  const planner::Plan floats = plan(p, gc200()).plan;
  p.partials_type = DataType::Half;
  const planner::Plan halves = plan(p, gc200()).plan;
  expect_sound(p, gc200(), {}, halves);
  EXPECT_LT(halves.cost.cycles, floats.cost.cycles);
}

TEST(Plan, StopsAtTheSearchLimitAndSaysSo) {
  Options o;
  o.search_limit = 1;
  const PlanResult result = plan(layer({1, 512, 512, 64}), gc200(), o);
  EXPECT_EQ(result.status, PlanStatus::LimitReached);
  EXPECT_FALSE(result.has_plan);
  EXPECT_THAT(result.reason, testing::HasSubstr("within searchLimit 1; raise it"));
}

// The limit may end the search of one layout, or of two after a plan with one is found.
TEST(Plan, IsFoundWithinASmallSearchLimitOnlyIfItIsTheCheapest) {
  Random random(3);
  int limited = 0, found = 0, limited_with_plan = 0;
  for (int i = 0; i < 30; ++i) {
    const Problem p = all_passes(layer(
        {1, 16 * (4 + random.below(60)), 16 * (4 + random.below(60)), 8 << random.below(6)},
        random.below(2) == 0 ? BlockShape{1, 1} : BlockShape{8, 8}, 0.01 + 0.2 * random.unit()));
    const Plan cheapest = plan(p, gc200(), sparse_options()).plan;
    Options o = sparse_options();
    for (o.search_limit = 10; o.search_limit < 10'000; o.search_limit *= 2) {
      const PlanResult result = plan(p, gc200(), o);
      SCOPED_TRACE(testing::Message() << to_string(p) << " within " << o.search_limit);
      if (result.status == PlanStatus::Found) {
        EXPECT_EQ(result.plan, cheapest);
        ++found;
        continue;
      }
      EXPECT_EQ(result.status, PlanStatus::LimitReached);
      EXPECT_NE(result.has_plan, !result.reason.empty());
      ++limited;
      limited_with_plan += result.has_plan;
    }
  }
  EXPECT_GT(limited, 50);
  EXPECT_GT(limited_with_plan, 20);
  EXPECT_GT(found, 50);
}

TEST(PlanFloor, IsNotCutShortByTheSearchLimit) {
  const Problem p = all_passes(layer({1, 512, 768, 64}));
  Options o;
  o.search_limit = 1;
  for (const std::int64_t boxes : {1, 100, 100'000}) {
    const PlanFloor floor = plan_floor(p, gc200(), o, boxes);
    EXPECT_EQ(floor, plan_floor(p, gc200(), {}, boxes));
    EXPECT_TRUE(floor.possible && floor.with_buckets);
    EXPECT_LE(floor.cycles, plan(p, gc200()).plan.cost.cycles);
  }
}

// Nothing costs fewer than no cycles.
TEST(PlanBelow, FindsNothingBelowALimitOfNoneOrLess) {
  const Problem p = all_passes(layer({1, 512, 768, 64}));
  for (const std::int64_t limit : {std::int64_t{0}, std::int64_t{-2}, INT64_MIN}) {
    const PlanResult result = plan_below(p, gc200(), Cycles(limit));
    EXPECT_EQ(result.status, PlanStatus::NoPlan);
    EXPECT_FALSE(result.has_plan);
  }
}

TEST(Plan, PricesBarriersAndLaunches) {
  device::Machine slow = gc200();
  slow.sync = Cycles(100'000);
  const Problem p = layer({1, 256, 256, 64});
  EXPECT_GT(plan(p, slow).plan.cost.cycles, plan(p, gc200()).plan.cost.cycles + Cycles(99'000));
  Options free;
  free.poplibs_parity = true;
  EXPECT_EQ(plan(p, slow, free).plan.cost.cycles, plan(p, gc200(), free).plan.cost.cycles);
}

TEST(Plan, ChoosesTheBlockTheKernelsKnow) {
  EXPECT_EQ(internal::block_to_use({16, 16}, DataType::Half), (BlockShape{16, 16}));
  EXPECT_EQ(internal::block_to_use({16, 16}, DataType::Float), (BlockShape{8, 8}));
  EXPECT_EQ(internal::block_to_use({12, 12}, DataType::Half), (BlockShape{4, 4}));
  EXPECT_EQ(internal::block_to_use({5, 5}, DataType::Half), (BlockShape{5, 5}));
  EXPECT_EQ(internal::block_to_use({4, 8}, DataType::Half), (BlockShape{4, 8}));
}

TEST(Plan, PrintsItsMethodsCutBucketsAndTerms) {
  const Plan p = plan(layer({1, 1024, 1024, 64}, {16, 16}, 0.02), gc200()).plan;
  ASSERT_FALSE(p.dense);
  EXPECT_THAT(to_string(p),
              AllOf(HasSubstr("Fwd"), HasSubstr(to_string(p.partition)),
                    HasSubstr("exchange operands"), HasSubstr("barriers and launches"),
                    HasSubstr(std::to_string(p.cost.cycles.value) + " cycles")));
}

TEST(Planner, GivesALayerWithoutNonZerosOneTileIfThatHoldsIt) {
  Problem problem{.size = {1, 512, 512, 16}, .density = 0, .grad_a = true, .grad_w = true};
  device::Machine machine = device::machine_preset("gc200");
  const Plan plan = plan_or_throw(problem, machine);
  EXPECT_EQ(plan.tiles_used(), 1);
  EXPECT_EQ(plan.nonzeros_per_bucket, 0);
  EXPECT_GE(plan.fwd_meta_words, Words(1));
  machine.tile_memory = Bytes(16 * 1024);
  EXPECT_GT(plan_or_throw(problem, machine).tiles_used(), 1);
}

}  // namespace
}  // namespace tessera::planner
