#include "tessera/runtime/static_layer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tessera/base/error.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/tests/runtime/static_case.hpp"
#include "tessera/tests/support/message_of.hpp"

namespace tessera::runtime {
namespace {

using planner::random_matrix;
using ::testing::HasSubstr;

sparse::Csr<float> some_matrix(std::uint64_t seed, std::int64_t rows, std::int64_t cols,
                               std::int64_t block, double density) {
  Random random(seed);
  return random_matrix(random, rows, cols, block, density);
}

// The weights of a group as the layer holds them.
template <class T>
sparse::Csr<float> rounded(const sparse::Csr<float>& weights) {
  sparse::Csr<float> result = weights;
  for (float& v : result.values) v = float(T(v));
  return result;
}

template <class T>
MatrixView<const T> of_group(const Matrix<T>& all, std::int64_t groups, std::int64_t g) {
  const std::int64_t rows = all.rows() / groups;
  return all.view().sub({g * rows, (g + 1) * rows}, {0, all.cols()});
}

// Compares every result of a layer with double precision, each with its own bound; with values of
// +1 and -1 every bit must be right, unless a sum may have been too long for its type.
template <class T>
void expect_right(const StaticCase& c, StaticLayer& layer, Values values) {
  SCOPED_TRACE(c.name());
  const StaticResults<T> r = run_all<T>(c, layer, values);
  const auto rounding = [&](Pass pass) { return layer.rounding(pass); };
  const std::int64_t groups = c.problem.size.g;
  for (std::int64_t g = 0; g < groups; ++g) {
    const sparse::Csr<float> weights = rounded<T>(layer.weights(g));
    const auto q = verify::verify_product<T>(weights, of_group(r.s, groups, g),
                                             of_group(r.q, groups, g), rounding(Pass::Fwd));
    const auto s_grad =
        verify::verify_product<T>(sparse::transpose(weights), of_group(r.q_grad, groups, g),
                                  of_group(r.s_grad, groups, g), rounding(Pass::GradA));
    const auto gradient = verify::verify_gradient<T>(
        weights, r.gradients[std::size_t(g)], of_group(r.q_grad, groups, g),
        of_group(r.s, groups, g), rounding(Pass::GradW));
    EXPECT_TRUE(q.ok()) << to_string(q);
    EXPECT_TRUE(s_grad.ok()) << to_string(s_grad);
    EXPECT_TRUE(gradient.ok()) << to_string(gradient);
    if (values != Values::Signs || sizeof(T) < sizeof(float)) continue;
    EXPECT_EQ(q.exact, q.compared);
    EXPECT_EQ(s_grad.exact, s_grad.compared);
    EXPECT_EQ(gradient.exact, gradient.compared);
  }
}

template <class T>
void expect_right(const StaticCase& c, Values values) {
  const auto executor = make_executor(2);
  StaticLayer layer = c.layer(*executor);
  expect_right<T>(c, layer, values);
}

template <class T>
class StaticLayerOf : public testing::Test {};
using Types = testing::Types<float, Half, BFloat16>;
TYPED_TEST_SUITE(StaticLayerOf, Types);

TYPED_TEST(StaticLayerOf, HasTheResultsOfDenseDoublePrecision) {
  using T = TypeParam;
  Random random(5);
  for (const std::int64_t block : {1, 4, 8, 16})
    for (const Values values : {Values::Signs, Values::Any})
      for (int trial = 0; trial < 4; ++trial) {
        const std::int64_t rows = 1 + random.below(24), cols = 1 + random.below(24);
        const auto m = random_matrix(random, rows, cols, block, 0.05 + random.unit() * 0.6);
        const std::int64_t batch = 1 + random.below(40), tiles = 1 + random.below(48);
        expect_right<T>(static_case(m, batch, data_type_of<T>(), tiles, values), values);
      }
}

// Each of these forms decides how tiles and workers share the work.
TYPED_TEST(StaticLayerOf, IsRightForEveryFormOfTheWork) {
  using T = TypeParam;
  constexpr DataType kType = data_type_of<T>();
  const auto signs = Values::Signs;
  for (const std::int64_t block : {1, 4}) {
    // One row for all tiles, and one column: each tile has a part of every sum of Fwd or of GradA.
    expect_right<T>(static_case(some_matrix(1, 1, 60, block, 0.9), 8, kType, 8, signs), signs);
    expect_right<T>(static_case(some_matrix(2, 60, 1, block, 0.9), 8, kType, 8, signs), signs);
    // Up to three rows on a tile: workers then take half of the columns each.
    expect_right<T>(static_case(some_matrix(3, 3, 30, block, 0.5), 16, kType, 1, signs), signs);
    expect_right<T>(static_case(some_matrix(4, 2, 30, block, 0.5), 24, kType, 2, signs), signs);
    // More tiles than blocks; one tile; one block.
    expect_right<T>(static_case(some_matrix(5, 4, 4, block, 0.4), 5, kType, 64, signs), signs);
    expect_right<T>(static_case(some_matrix(6, 20, 20, block, 0.3), 7, kType, 1, signs), signs);
    expect_right<T>(static_case(some_matrix(7, 1, 1, block, 1.1), 1, kType, 4, signs), signs);
    // Long rows, whose columns are decoded in several pieces; and a long batch.
    expect_right<T>(static_case(some_matrix(8, 2, 700, block, 0.9), 4, kType, 1, signs), signs);
    expect_right<T>(static_case(some_matrix(9, 3, 4, block, 0.9), 1500, kType, 2, signs), signs);
  }
}

TEST(StaticLayer, RowsWithoutBlocksAreZero) {
  sparse::Csr<float> m = some_matrix(1, 12, 9, 4, 0.0);
  for (const Values values : {Values::Signs, Values::Any}) {
    expect_right<Half>(static_case(m, 9, DataType::Half, 6, values), values);
    m.row_begin.assign(m.row_begin.size(), 0);
    m.col = {3, 5};  // rows 4 alone has blocks
    for (std::size_t row = 5; row < m.row_begin.size(); ++row) m.row_begin[row] = 2;
    expect_right<Half>(static_case(m, 9, DataType::Half, 6, values), values);
    m.col.clear();
    m.row_begin.assign(m.row_begin.size(), 0);
  }
}

TEST(StaticLayer, TakesSizesThatAreNoMultipleOfTheBlock) {
  StaticCase c = static_case(some_matrix(2, 5, 6, 4, 0.5), 3, DataType::Float, 4);
  c.problem.size.x -= 3;
  c.problem.size.y -= 1;
  plan_as_poplibs(c);
  const auto executor = make_executor(2);
  StaticLayer layer = c.layer(*executor);
  const StaticResults<float> r = run_all<float>(c, layer);
  const sparse::Csr<float> elements = sparse::with_block(layer.weights(), {1, 1});
  for (std::int64_t x = 0; x < c.problem.size.x; ++x)
    for (std::int64_t z = 0; z < 3; ++z) {
      double sum = 0;
      for (auto i = elements.row_begin[std::size_t(x)]; i < elements.row_begin[std::size_t(x) + 1];
           ++i)
        if (elements.col[std::size_t(i)] < c.problem.size.y)
          sum += double(elements.values[std::size_t(i)]) * r.s(elements.col[std::size_t(i)], z);
      EXPECT_NEAR(r.q(x, z), sum, 1e-4);
    }
}

TYPED_TEST(StaticLayerOf, RunsEveryGroupOnTilesOfItsOwn) {
  using T = TypeParam;
  for (const std::int64_t block : {1, 8})
    expect_right<T>(static_case(some_matrix(3, 9, 11, block, 0.3), 12, data_type_of<T>(), 26,
                                Values::Signs, /*groups=*/3),
                    Values::Signs);
}

// Moves every block to a tile drawn at random, in a plan with two parts of the batch of different
// sizes, so that nothing depends on the shape that a planner gives its plans.
TYPED_TEST(StaticLayerOf, RunsAnyDistributionOfBlocks) {
  using T = TypeParam;
  Random random(8);
  for (const std::int64_t block : {1, 4, 16})
    for (int trial = 0; trial < 4; ++trial) {
      const auto m = random_matrix(random, 6 + random.below(9), 6 + random.below(9), block, 0.4);
      StaticCase c = static_case(m, 20, data_type_of<T>(), 13, Values::Signs);
      planner::StaticPlan& plan = c.plans[0];
      plan.parts = {{0, 8, 0, 0}, {8, 20, 6, 1}};
      plan.layouts.resize(2);
      for (std::size_t l = 0; l < 2; ++l) {
        planner::StaticLayout& layout = plan.layouts[l];
        layout.tiles.assign(l == 0 ? 5 : 7, {});
        layout.tile_of.resize(std::size_t(m.blocks()));
        for (std::int32_t& tile : layout.tile_of)
          tile = std::int32_t(random.below(layout.tiles.size()));
      }
      expect_right<T>(c, Values::Signs);
    }
}

TYPED_TEST(StaticLayerOf, RunsGradAOnTilesOfItsOwn) {
  using T = TypeParam;
  Random random(9);
  for (const std::int64_t block : {1, 4, 16})
    for (const std::int64_t groups : {1, 2})
      for (int trial = 0; trial < 3; ++trial) {
        const auto m = random_matrix(random, 6 + random.below(9), 6 + random.below(9), block, 0.4);
        StaticCase c = static_case(m, 1 + random.below(40), data_type_of<T>(), 4 + random.below(30),
                                   Values::Signs, groups);
        give_grad_a_random_tiles(c, random);
        expect_right<T>(c, Values::Signs);
      }
}

std::vector<StaticCase> typical_cases(DataType type) {
  std::vector<StaticCase> cases;
  Random random(10);
  cases.push_back(static_case(some_matrix(5, 20, 30, 4, 0.3), 24, type, 20));
  give_grad_a_random_tiles(cases.back(), random);
  cases.push_back(static_case(some_matrix(1, 40, 50, 1, 0.2), 20, type, 24));
  cases.push_back(static_case(some_matrix(2, 12, 9, 4, 0.4), 64, type, 16));
  cases.push_back(static_case(some_matrix(3, 6, 9, 16, 0.4), 33, type, 32));
  cases.push_back(static_case(some_matrix(4, 9, 9, 8, 0.4), 8, type, 11, Values::Any, 2));
  return cases;
}

template <class T>
void expect_same_bits() {
  for (const StaticCase& c : typical_cases(data_type_of<T>())) {
    SCOPED_TRACE(c.name());
    const auto one = make_executor(1);
    StaticLayer first = c.layer(*one);
    const StaticResults<T> expected = run_all<T>(c, first);
    for (const int threads : {1, 2, 3, 7, 16})
      for (const auto mode : {device::ExchangeMode::Share, device::ExchangeMode::Isolate}) {
        const auto executor = make_executor(threads);
        StaticLayer layer = c.layer(*executor, mode);
        expect_same<T>(run_all<T>(c, layer), expected);
      }
  }
}

TYPED_TEST(StaticLayerOf, HasTheSameBitsForAnyThreadsAndBothExchangeModes) {
  expect_same_bits<TypeParam>();
}

TEST(StaticLayer, TakesNewValues) {
  const StaticCase c =
      static_case(some_matrix(3, 30, 20, 1, 0.3), 24, DataType::Half, 12, Values::Signs);
  const auto executor = make_executor(2);
  StaticLayer layer = c.layer(*executor);
  expect_right<Half>(c, layer, Values::Signs);
  sparse::Csr<float> other = layer.weights();
  fill(other, Values::Signs, 99);
  layer.set_values(other.values);
  EXPECT_EQ(layer.weights(), other);
  expect_right<Half>(c, layer, Values::Signs);
  other.values.pop_back();
  EXPECT_THAT(test::refusal([&] { layer.set_values(other.values); }), HasSubstr("the layer has"));
  EXPECT_THAT(test::refusal([&] { layer.set_values(other.values, 1); }), HasSubstr("in 0..0"));
  other = layer.weights();
  other.values[2] = 70000;
  EXPECT_THAT(test::message_of([&] { layer.set_values(other.values); }),
              HasSubstr("weight 2 is 70000; half holds"));
  EXPECT_NE(layer.weights(), other);
}

TEST(StaticLayer, RefusesWordsPast16BitsByName) {
  StaticCase c = static_case(some_matrix(3, 2, 300, 1, 0.9), 8, DataType::Half, 2);
  c.problem.size.z = 512;
  c.plans[0].parts = {{0, 512, 0, 0}};
  c.plans[0].layouts = {c.plans[0].layouts[0]};
  auto& layout = c.plans[0].layouts[0];
  layout.tiles.assign(1, {});
  layout.tile_of.assign(std::size_t(c.weights[0]->blocks()), 0);
  const auto executor = make_executor(1);
  c.machine.tile_memory = Bytes(1 << 24);
  EXPECT_THAT(
      test::message_of([&] { static_cast<void>(c.layer(*executor)); }, ErrorCode::LimitExceeded),
      HasSubstr("the place of a column is 65536 and words have 16 bits"));
  c.machine.word_bits = 32;
  StaticLayer layer = c.layer(*executor);
  expect_right<Half>(c, layer, Values::Any);
}

TEST(StaticLayer, RefusesAPlanOfAnotherLayer) {
  const auto executor = make_executor(1);
  const StaticCase good = static_case(some_matrix(3, 10, 20, 4, 0.4), 8, DataType::Half, 4);
  const auto message = [&](auto&& change) {
    StaticCase c = good;
    change(c);
    return test::refusal([&] { static_cast<void>(c.layer(*executor)); });
  };
  EXPECT_THAT(message([](StaticCase& c) { c.plans[0].layouts[0].tile_of.pop_back(); }),
              HasSubstr("blocks and the pattern"));
  EXPECT_THAT(message([](StaticCase& c) { c.plans[0].layouts[0].tile_of[0] = 99; }),
              HasSubstr("on tile 99"));
  EXPECT_THAT(message([](StaticCase& c) { c.plans[0].data_type = DataType::Float; }),
              HasSubstr("is for float"));
  EXPECT_THAT(message([](StaticCase& c) { c.problem.size.z = 99; }), HasSubstr("of the batch"));
  EXPECT_THAT(message([](StaticCase& c) { c.machine.tiles = 1; }), HasSubstr("tiles of 1"));
  EXPECT_THAT(message([](StaticCase& c) { c.problem.size.x += 40; }), HasSubstr("another size"));
  EXPECT_THAT(message([](StaticCase& c) { c.plans.clear(); }), HasSubstr("1 matrices and 0 plans"));
  EXPECT_THAT(message([](StaticCase& c) { c.problem.block = {2, 2}; }),
              HasSubstr("no static kernel"));
  EXPECT_THAT(message([](StaticCase& c) { c.plans[0].parts[0].layout = 7; }),
              HasSubstr("names layout 7"));
}

TEST(StaticLayer, RefusesCallsThatItCannotRun) {
  StaticCase c = static_case(some_matrix(3, 5, 5, 4, 0.5), 4, DataType::Float, 2);
  c.problem.grad_a = c.problem.grad_w = false;
  const auto executor = make_executor(1);
  StaticLayer layer = c.layer(*executor);
  Matrix<float> s(20, 4), q(20, 4), small(19, 4);
  Matrix<Half> other(20, 4);
  const auto message = [](auto&& call) { return test::refusal(call); };
  EXPECT_THAT(message([&] { layer.grad_a<float>(q.view(), s.view()); }),
              HasSubstr("grad_a: the problem does not include"));
  EXPECT_THAT(message([&] { layer.program(Pass::GradW); }), HasSubstr("GradW"));
  EXPECT_THAT(message([&] { layer.forward<Half>(other.view(), other.view()); }),
              HasSubstr("operands are half but the layer is float"));
  EXPECT_THAT(message([&] { layer.forward<float>(small.view(), q.view()); }), HasSubstr("20 x 4"));
  EXPECT_THAT(message([&] { layer.forward<float>(s.view(), s.view()); }), HasSubstr("q"));
  EXPECT_THAT(message([&] { layer.weights(1); }), HasSubstr("in 0..0"));
}

TEST(StaticLayer, PrintsItsProgramAndItsMemory) {
  const StaticCase c = static_case(some_matrix(3, 10, 20, 4, 0.4), 64, DataType::Half, 12);
  const auto executor = make_executor(1);
  StaticLayer layer = c.layer(*executor);
  const std::string text = to_string(layer.program(Pass::GradA));
  for (const char* const part : {"static GradA", "static words", "places of transposed blocks",
                                 "arrange", "exchange operands", "transpose values", "multiply"})
    EXPECT_THAT(text, HasSubstr(part));
  for (const Pass pass : {Pass::Fwd, Pass::GradA, Pass::GradW})
    EXPECT_LE(layer.memory(pass).high_water(), layer.high_water());
  EXPECT_GT(layer.high_water(), Bytes(0));
  EXPECT_EQ(layer.batch(), 64);
  EXPECT_EQ(layer.values(), std::ssize(c.weights[0]->values));
}

}  // namespace
}  // namespace tessera::runtime
