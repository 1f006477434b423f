#include "tessera/planner/dense_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/random.hpp"
#include "tessera/planner/dense_operand.hpp"
#include "tessera/planner/internal/dense_search.hpp"

namespace tessera::planner {
namespace {

Problem layer(Dims size, DataType type = DataType::Half) {
  return {.size = size, .data_type = type, .grad_a = true, .grad_w = true};
}

Cycles cycles_of(const DensePlan& plan, Pass pass, Term term) {
  for (const CostTerm& t : plan.find(pass)->cost.terms)
    if (t.name == term) return t.cycles;
  return {};
}

TEST(DenseProduct, HasTheSizesOfEveryPass) {
  const Problem p = layer({2, 30, 50, 70});
  EXPECT_EQ(dense_product(p, Pass::Fwd).size, (ProductShape{30, 50, 70}));
  EXPECT_EQ(dense_product(p, Pass::GradA).size, (ProductShape{50, 30, 70}));
  EXPECT_EQ(dense_product(p, Pass::GradW).size, (ProductShape{30, 70, 50}));
}

TEST(DenseOperand, HasTheDimensionsOfTheCallersArrayAndTheOneThatItLacks) {
  constexpr ProductDim kRows = &ProductShape::rows, kInner = &ProductShape::inner,
                       kColumns = &ProductShape::columns;
  PassProduct product{.left_transposed = true};
  EXPECT_EQ(dense_operand(product, Side::Left, Side::Left),
            (DenseOperand{kInner, kRows, kColumns, /*transposed=*/true, /*reordered=*/true}));
  EXPECT_EQ(dense_operand(product, Side::Left, Side::Right),
            (DenseOperand{kInner, kColumns, kRows, /*transposed=*/false, /*reordered=*/true}));
  product = {.right_transposed = true};
  EXPECT_EQ(dense_operand(product, Side::Left, Side::Left),
            (DenseOperand{kRows, kInner, kColumns, /*transposed=*/false, /*reordered=*/false}));
  EXPECT_EQ(dense_operand(product, Side::Right, Side::Right),
            (DenseOperand{kColumns, kInner, kRows, /*transposed=*/true, /*reordered=*/true}));
}

TEST(DensePlan, PlansEveryPassOfTheProblemAndSumsTheirCycles) {
  const auto machine = device::machine_preset("gc200");
  const DensePlan plan = plan_dense_or_throw(layer({1, 512, 256, 64}), machine);
  ASSERT_EQ(plan.passes.size(), 3u);
  Cycles sum;
  for (const DensePassPlan& pass : plan.passes) {
    EXPECT_LE(pass.parts.product(), machine.tiles);
    EXPECT_EQ(pass.rounds.product(), 1);
    sum += pass.cost.cycles();
  }
  EXPECT_EQ(plan.cost.cycles, sum);
  EXPECT_EQ(plan_dense_or_throw({.size = {1, 512, 256, 64}}, machine).passes.size(), 1u);
}

TEST(DensePlan, DoesNotDependOnBlockDensityOrSumsOfTheLayer) {
  const auto machine = device::machine_preset("bow");
  Problem sparse = layer({1, 512, 256, 64});
  const DensePlan plan = plan_dense_or_throw(sparse, machine);
  sparse.block = {16, 16};
  sparse.density = 0.01;
  sparse.partials_type = DataType::Half;
  EXPECT_EQ(plan_dense_or_throw(sparse, machine), plan);
}

TEST(DensePlan, SumsHalvesInHalfUnlessFloatIsAsked) {
  const auto machine = device::machine_preset("gc200");
  const Problem p = layer({1, 1024, 1024, 1024});
  const DensePlan fast = plan_dense_or_throw(p, machine);
  const DensePlan exact = plan_dense_or_throw(p, machine, {.partials_type = DataType::Float});
  EXPECT_EQ(fast.partials_type, DataType::Half);
  EXPECT_GT(2 * cycles_of(exact, Pass::Fwd, Term::Multiply).value,
            3 * cycles_of(fast, Pass::Fwd, Term::Multiply).value);
  const DensePlan floats = plan_dense_or_throw(layer({1, 64, 64, 8}, DataType::Float), machine);
  EXPECT_EQ(floats.partials_type, DataType::Float);
  EXPECT_THROW(plan_dense(layer({1, 64, 64, 8}, DataType::Float), machine,
                          {.partials_type = DataType::Half}),
               Error);
}

TEST(DensePlan, TransposesRForGradAAndBothOperandsForGradW) {
  const auto machine = device::machine_preset("gc200");
  const DensePlan plan = plan_dense_or_throw(layer({1, 512, 512, 512}), machine);
  const auto share = [&](Pass pass) {
    return double(cycles_of(plan, pass, Term::RearrangeOperands).value) /
           double(plan.find(pass)->cost.cycles().value);
  };
  EXPECT_GT(share(Pass::GradA), share(Pass::Fwd));
  EXPECT_GT(share(Pass::GradW), share(Pass::GradA));
}

// 4096^3 in float does not fit in one piece; published runs of it exist.
TEST(DensePlan, TakesRoundsIfMemoryAsksForThem) {
  const auto machine = device::machine_preset("bow");
  const Problem large{.size = {1, 4096, 4096, 4096}, .data_type = DataType::Float};
  const DensePlan plan = plan_dense_or_throw(large, machine);
  EXPECT_GT(plan.passes[0].rounds.product(), 1);
  EXPECT_LE(plan.cost.temp.value, 0.6 * double(machine.tile_memory.value));
  EXPECT_LE(plan.cost.temp + plan.cost.resident, machine.tile_memory);
  const Problem small{.size = {1, 4096, 4096, 64}, .data_type = DataType::Float};
  EXPECT_EQ(plan_dense_or_throw(small, machine).passes[0].rounds.product(), 1);
}

// An operand that stays on the tiles is paid for once, so a large batch has the better rate.
TEST(DensePlan, RoundsOverColumnsFetchTheLeftOperandOnce) {
  const auto machine = device::machine_preset("bow");
  const auto cycles = [&](std::int64_t batch) {
    const Problem p{.size = {1, 4096, 4096, batch}, .data_type = DataType::Float};
    return plan_dense_or_throw(p, machine).cost.cycles.value;
  };
  EXPECT_LT(100 * cycles(4096), 95 * 16 * cycles(256));
}

TEST(DensePlan, SaysWhyThereIsNone) {
  auto machine = device::machine_preset("gc200");
  machine.tiles = 4;
  const DensePlanResult large = plan_dense(layer({1, 8192, 8192, 64}), machine);
  EXPECT_FALSE(large.plan);
  EXPECT_NE(large.reason.find("bytes at least"), std::string::npos) << large.reason;
  const DensePlanResult groups = plan_dense(layer({5, 16, 16, 16}), machine);
  EXPECT_NE(groups.reason.find("5 groups need 5 tiles"), std::string::npos) << groups.reason;
  EXPECT_THROW(plan_dense_or_throw(layer({5, 16, 16, 16}), machine), Error);
  EXPECT_THROW(plan_dense(layer({1, 8, 8, 8}), machine, {.available_memory_proportion = 0}), Error);
  machine.exchange_bytes_per_cycle = 0;
  EXPECT_THROW(plan_dense(layer({1, 8, 8, 8}), machine), Error);
}

TEST(DensePlan, FetchesNothingOnOneTile) {
  for (const std::int64_t tiles : {1, 2}) {
    auto machine = device::machine_preset("gc200");
    machine.tiles = tiles;
    const DensePlan plan = plan_dense_or_throw({.size = {1, 16, 16, 16}}, machine);
    EXPECT_EQ(dense_form(plan.passes.front(), plan, machine).fetches, tiles > 1);
  }
}

// Four rounds of one range each against one round of a quarter of the product.
TEST(DensePlan, PricesTheOperandThatStaysOnceAndKeepsItsBytes) {
  const auto machine = device::machine_preset("gc200");
  const auto estimate = [&](Dims size, const ProductShape& rounds) {
    const internal::DenseCase c{
        .product = dense_product(Problem{.size = size, .data_type = DataType::Float}, Pass::Fwd),
        .machine = machine,
        .kernel = dense_kernel(machine, DataType::Float, DataType::Float)};
    return internal::dense_estimate(c, {rounds, {2, 2, 2}, Side::Right, Side::Right});
  };
  const std::int64_t slice = 32 * 32 * 4;  // bytes of the slice of either operand on a tile
  const std::int64_t left = slice / 4, right = slice / 8;  // neighbours share the right operand
  const auto quarter = estimate({1, 64, 64, 64}, {1, 1, 1});
  const auto rows = estimate({1, 256, 64, 64}, {4, 1, 1});
  const auto columns = estimate({1, 64, 64, 256}, {1, 1, 4});
  EXPECT_EQ(quarter.steps[0].cycles, left + right);
  EXPECT_EQ(rows.steps[0].cycles, 4 * left + right);
  EXPECT_EQ(columns.steps[0].cycles, left + 4 * right);
  for (const std::size_t sums : {3, 4}) {
    EXPECT_EQ(rows.steps[sums].temp, quarter.steps[sums].temp + slice);
    EXPECT_EQ(columns.steps[sums].temp, quarter.steps[sums].temp + slice);
  }
}

bool leaves_a_share_empty(const internal::DenseCase& c, const internal::DenseCut& cut) {
  const ProductShape& size = c.product.size;
  const ProductShape grain = internal::dense_grain(c.kernel, cut.weights);
  const auto empty = [](std::int64_t all, std::int64_t g, std::int64_t parts) {
    return share_of(all, g, parts, parts - 1).size() == 0;
  };
  return empty(size.rows, grain.rows, cut.parts.rows) ||
         empty(size.inner, grain.inner, cut.parts.inner) ||
         empty(size.columns, grain.columns, cut.parts.columns);
}

// No count of parts that the search leaves out is cheaper.
TEST(DensePlan, IsTheCheapestOfAllPartitionsOfRandomProducts) {
  Random random(7);
  auto machine = device::machine_preset("gc200");
  machine.tiles = 24;
  const auto any = [&](std::int64_t most) {
    return 1 + std::int64_t(random.below(std::uint64_t(most)));
  };
  for (int i = 0; i < 20; ++i) {
    const DataType type = i % 2 == 0 ? DataType::Half : DataType::Float;
    const Problem p{.size = {1, any(200), any(200), any(100)}, .data_type = type};
    const DensePlan plan = plan_dense_or_throw(p, machine);
    const internal::DenseCase c{.product = dense_product(p, Pass::Fwd),
                                .machine = machine,
                                .kernel = dense_kernel(machine, type, type)};
    std::int64_t least = plan.cost.cycles.value;
    for (std::int64_t rows = 1; rows <= 24; ++rows)
      for (std::int64_t inner = 1; rows * inner <= 24; ++inner)
        for (std::int64_t columns = 1; rows * inner * columns <= 24; ++columns)
          for (const Side weights : {Side::Left, Side::Right})
            for (const Side neighbours : {Side::Left, Side::Right}) {
              const internal::DenseCut cut{{}, {rows, inner, columns}, weights, neighbours};
              if (leaves_a_share_empty(c, cut)) continue;
              least = std::min(least, internal::dense_estimate(c, cut).cycles);
            }
    EXPECT_EQ(plan.cost.cycles.value, least) << to_string(p);
  }
}

// 800 bytes spread over eight tiles are 100 bytes in each.
TEST(EvenSpreadSenders, AreTheOtherTilesThatHoldABlockOfBytes) {
  auto machine = device::machine_preset("gc200");
  machine.tiles = 8;
  EXPECT_EQ(even_spread_senders(machine, 100, 800), 1);
  EXPECT_EQ(even_spread_senders(machine, 101, 800), 2);
  EXPECT_EQ(even_spread_senders(machine, 800, 800), 7);  // the receiver has its own part
  EXPECT_EQ(even_spread_senders(machine, 0, 800), 0);
  machine.tiles = 1;
  EXPECT_EQ(even_spread_senders(machine, 800, 800), 0);
}

}  // namespace
}  // namespace tessera::planner
