#include <gtest/gtest.h>

#include <array>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tessera/base/pass.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/planner/layouts.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/sparse/restrict.hpp"
#include "tessera/tests/support/gradients.hpp"
#include "tessera/verify/verify.hpp"

// Every pair of types through every kind of plan: groups, sizes that suit nothing, dense plans,
// plans whose GradA has a layout of its own, both exchanges of GradW, spills.
namespace tessera::runtime {
namespace {

struct Types {
  DataType data, sums;
};
void PrintTo(const Types& types, std::ostream* out) {
  *out << to_string(types.data) << " to " << to_string(types.sums);
}
constexpr Types kTypes[] = {{DataType::Float, DataType::Float},
                            {DataType::Half, DataType::Float},
                            {DataType::Half, DataType::Half},
                            {DataType::BFloat16, DataType::Float}};

struct TypedCase {
  Problem problem;
  planner::Plan plan;
  device::Machine machine;
  std::vector<sparse::Csr<float>> weights;  // of each group
  bool signs = false;                       // weights and operands are +1 and -1
  bool force_spills = false;
  std::uint64_t seed = 1;
};

Problem random_problem(Random& random, const Types& types) {
  constexpr std::array<BlockShape, 5> kBlocks{{{1, 1}, {4, 4}, {8, 8}, {16, 16}, {2, 6}}};
  Problem p{.data_type = types.data, .partials_type = types.sums};
  p.block = kBlocks[std::size_t(random.below(5))];
  p.size = {1 + random.below(2) * random.below(3), 1 + random.below(70), 1 + random.below(70),
            1 + random.below(20)};
  p.density = 0.05 + 0.4 * random.unit();
  p.grad_a = p.grad_w = true;
  return p;
}

planner::Options random_options(Random& random) {
  planner::Options options;
  options.available_memory_proportion = 1;
  options.bucket_confidence = 0;
  options.meta_info_bucket_oversize_proportion = 3;
  options.constraints.grad_w_exchange_buckets = random.below(2) == 0;
  options.constraints.use_dense = random.below(4) == 0;
  if (random.below(2) == 0) options.shared_buckets = random.below(2) == 0;
  options.per_pass_plans = false;
  return options;
}

// With two layouts, whether or not one would do.
planner::PlanResult plan_two(const TypedCase& c, const planner::Options& options,
                             bool grad_w_there) {
  const auto [here, there] = planner::two_problems(c.problem, grad_w_there);
  planner::PlanResult result = planner::plan(here, c.machine, options);
  const planner::PlanResult backward = planner::plan(there, c.machine, options);
  result.has_plan = result.has_plan && backward.has_plan;
  result.plan.backward = {backward.plan};
  return result;
}

sparse::Csr<float> draw_weights(const TypedCase& c, std::uint64_t seed) {
  const Dims whole = c.problem.size_in_blocks();
  auto weights = sparse::random_pattern(whole.x, whole.y, c.problem.block, c.problem.density, seed);
  Random random(seed + 100);
  if (!c.signs)
    for (float& v : weights.values) v = float(2 * random.unit() - 1);
  return weights;
}

// None where there is no plan.
std::optional<TypedCase> draw_case(const Types& types, std::uint64_t seed) {
  Random random(seed);
  TypedCase c{.problem = random_problem(random, types),
              .machine = device::machine_preset("gc200"),
              .signs = random.below(2) == 0,
              .force_spills = random.below(4) == 0,
              .seed = seed};
  c.machine.tiles = c.problem.size.g * (1 + random.below(24));
  planner::Options options = random_options(random);
  const bool two = random.below(4) == 0;
  if (two) options.shared_buckets.reset();
  planner::PlanResult result = two ? plan_two(c, options, random.below(2) == 0)
                                   : planner::plan(c.problem, c.machine, options);
  if (!result.has_plan) return std::nullopt;
  c.plan = std::move(result.plan);
  const auto one_bucket = [](const planner::Plan& p) { return p.tiles_used() == p.partition.g; };
  if (one_bucket(c.plan) || (two && one_bucket(c.plan.backward[0]))) c.force_spills = false;
  for (std::int64_t g = 0; g < c.problem.size.g; ++g)
    c.weights.push_back(draw_weights(c, seed + 10 * std::uint64_t(g)));
  return c;
}

template <class T>
Matrix<T> draw_operand(const TypedCase& c, std::int64_t rows, std::uint64_t seed) {
  auto matrix = random_matrix<T>(rows, c.problem.size.z, c.seed + seed);
  if (c.signs)
    for (T& v : matrix.elements()) v = T(float(v) < 0 ? -1.0f : 1.0f);
  return matrix;
}

// One group's weights as the layer holds them, as elements, without what lies beyond its sides.
template <class T>
sparse::Csr<float> reference(const TypedCase& c, std::size_t group) {
  sparse::Csr<float> elements = sparse::with_block(c.weights[group], {1, 1});
  for (float& v : elements.values) v = float(T(v));
  return sparse::cropped(elements, c.problem.size.x, c.problem.size.y);
}

template <class T>
MatrixView<const T> group_of(const Matrix<T>& all, std::int64_t rows, std::int64_t g) {
  return all.view().sub({g * rows, (g + 1) * rows}, {0, all.cols()});
}

// Returns the verdict over the results of three passes, which is wrong if any result is.
template <class T>
verify::Verdict run_passes(const TypedCase& c, FullyConnected& layer) {
  const Dims n = c.problem.size;
  const auto s = draw_operand<T>(c, n.g * n.y, 1), q_grad = draw_operand<T>(c, n.g * n.x, 2);
  Matrix<T> q(n.g * n.x, n.z), s_grad(n.g * n.y, n.z);
  std::vector<sparse::Csr<float>> gradients(std::size_t(n.g));
  layer.forward<T>(s.view(), q.view());
  layer.grad_a<T>(q_grad.view(), s_grad.view());
  test::grad_w_by_group<T>(layer, q_grad.view(), s.view(), gradients);
  const auto rounding = [&](Pass pass) {
    return verify::Rounding{c.problem.data_type, c.problem.partials_type,
                            partial_sums(c.plan, pass)};
  };
  verify::Verdict all;
  const auto add = [&all](const verify::Verdict& v) {
    all.compared += v.compared;
    all.exact += v.exact;
    all.wrong += v.wrong;
    all.worst = std::max(all.worst, v.worst);
  };
  for (std::int64_t g = 0; g < n.g; ++g) {
    const auto weights = reference<T>(c, std::size_t(g));
    const auto gradient =
        sparse::cropped(sparse::with_block(gradients[std::size_t(g)], {1, 1}), n.x, n.y);
    const auto s_g = group_of(s, n.y, g), q_grad_g = group_of(q_grad, n.x, g);
    add(verify::verify_product<T>(weights, s_g, group_of(q, n.x, g), rounding(Pass::Fwd)));
    add(verify::verify_product<T>(sparse::transpose(weights), q_grad_g, group_of(s_grad, n.y, g),
                                  rounding(Pass::GradA)));
    add(verify::verify_gradient<T>(weights, gradient, q_grad_g, s_g, rounding(Pass::GradW)));
  }
  return all;
}

// None where the pattern does not fit.
std::optional<verify::Verdict> run_case(const TypedCase& c, device::ExchangeMode mode) {
  const auto executor = make_executor(ExecutorKind::Threads, 2);
  FullyConnected layer(c.problem, c.plan, c.machine, mode, *executor);
  if (layer.set_weights(sparse::checked(c.weights), {.force_spills = c.force_spills}))
    return std::nullopt;
  return with_type(c.problem.data_type,
                   [&](auto zero) { return run_passes<decltype(zero)>(c, layer); });
}

// Returns 1 for each feature that a case has; a sweep counts them.
std::map<std::string, int> features_of(const TypedCase& c) {
  return {{"groups", c.problem.size.g > 1},
          {"padding", c.problem.size.x % c.problem.block.rows != 0},
          {"dense", c.plan.use_dense},
          {"two layouts", !c.plan.backward.empty()},
          {"buckets travel", c.plan.grad_w_exchange_buckets},
          {"forced spills", c.force_spills},
          {"signs", c.signs}};
}

class EveryPairOfTypes : public testing::TestWithParam<Types> {};

TEST_P(EveryPairOfTypes, IsRightInAllPassesOfEveryKindOfPlan) {
  std::map<std::string, int> met;
  int ran = 0;
  for (std::uint64_t seed = 1; seed <= 160; ++seed) {
    const auto c = draw_case(GetParam(), seed);
    if (!c) continue;
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << to_string(c->problem) << "\n"
                                    << to_string(c->plan));
    const auto mode = seed % 2 == 0 ? device::ExchangeMode::Isolate : device::ExchangeMode::Share;
    const auto verdict = run_case(*c, mode);
    if (!verdict) continue;
    ++ran;
    for (const auto& [feature, has] : features_of(*c)) met[feature] += has;
    EXPECT_TRUE(verdict->ok()) << to_string(*verdict);
    EXPECT_TRUE(!c->signs || verdict->exact == verdict->compared) << "equality is not asked for";
  }
  EXPECT_GT(ran, 80);

  for (const auto& [feature, times] : met) EXPECT_GT(times, 8) << feature;
  EXPECT_EQ(met.size(), 7u);
}

// The types are those of the kernels: half sums must show in a result that float sums give
// otherwise, bfloat16 in one that halves give otherwise.
TEST(Types, ShowInTheResult) {
  // 2048 + 1 + 1: half sums stay at 2048. One block on one tile.
  const auto run = [](const Types& types, float first) {
    TypedCase c{.problem = {.size = {1, 4, 4, 1},
                            .block = {4, 4},
                            .density = 1,
                            .data_type = types.data,
                            .partials_type = types.sums},
                .machine = device::machine_preset("gc200")};
    c.machine.tiles = 1;
    c.plan = planner::plan_or_throw(c.problem, c.machine, planner::sparse_options());
    const auto executor = make_executor(1);
    FullyConnected layer(c.problem, c.plan, c.machine, device::ExchangeMode::Share, *executor);
    Matrix<float> r(4, 4);
    r(0, 0) = first;
    r(0, 1) = r(0, 2) = 1;
    EXPECT_FALSE(layer.set_weights(sparse::from_dense(std::as_const(r).view(), {4, 4})));
    return with_type(types.data, [&](auto zero) {
      using T = decltype(zero);
      Matrix<T> s(4, 1), q(4, 1);
      for (std::int64_t y = 0; y < 4; ++y) s(y, 0) = T(1.0f);
      layer.forward<T>(std::as_const(s).view(), q.view());
      return float(q(0, 0));
    });
  };
  EXPECT_EQ(run(kTypes[0], 2049), 2051.0f);
  EXPECT_EQ(run(kTypes[1], 2048), 2050.0f);
  EXPECT_EQ(run(kTypes[2], 2048), 2048.0f);
  EXPECT_EQ(run(kTypes[3], 256), 258.0f);
  EXPECT_EQ(run(kTypes[3], 512), 512.0f) << "514 rounds to 512 in 8 bits, at the end";
}

TEST(Types, OtherPairsAreRefusedByName) {
  const device::Machine machine = device::machine_preset("gc200");
  for (const auto& [data, sums, block] :
       {std::tuple{DataType::Float, DataType::Half, BlockShape{4, 4}},
        {DataType::BFloat16, DataType::Half, {4, 4}},
        {DataType::BFloat16, DataType::BFloat16, {4, 4}},
        {DataType::Half, DataType::BFloat16, {4, 4}}}) {
    const Problem problem{
        .size = {1, 8, 8, 1}, .block = block, .data_type = data, .partials_type = sums};
    try {
      planner::plan(problem, machine);
      ADD_FAILURE() << to_string(data) << " to " << to_string(sums);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
      EXPECT_NE(std::string(error.what()).find("partials"), std::string::npos);
    }
  }
}

// Planner and machine take bfloat16 for half: same units, same bytes, same grains.
TEST(Types, BFloat16IsPricedAsHalf) {
  const device::Machine machine = device::machine_preset("gc200");
  for (const BlockShape block : {BlockShape{1, 1}, {4, 4}, {16, 16}})
    for (const double density : {0.05, 1.0}) {
      Problem problem{.size = {1, 256, 320, 48},
                      .block = block,
                      .density = density,
                      .data_type = DataType::Half,
                      .grad_a = true,
                      .grad_w = true};
      const planner::Options sparse = planner::sparse_options();
      const planner::Plan half = planner::plan_or_throw(problem, machine, sparse);
      problem.data_type = DataType::BFloat16;
      EXPECT_EQ(planner::plan_or_throw(problem, machine, sparse), half);
    }
}

std::string name_of(const testing::TestParamInfo<Types>& p) {
  return to_string(p.param.data) + "_" + to_string(p.param.sums);
}

INSTANTIATE_TEST_SUITE_P(All, EveryPairOfTypes, testing::ValuesIn(kTypes), name_of);

}  // namespace
}  // namespace tessera::runtime
