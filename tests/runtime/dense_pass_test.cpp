#include "tessera/runtime/internal/dense_pass.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/base/random.hpp"
#include "tessera/runtime/internal/own_pass.hpp"

namespace tessera::runtime::internal {
namespace {

using planner::DensePassPlan;
using planner::DensePlan;
using planner::PassProduct;
using planner::ProductShape;

template <class T>
device::ByteRows bytes(MatrixView<T> view) {
  return {reinterpret_cast<std::byte*>(view.data), view.rows, view.cols * std::int64_t(sizeof(T)),
          view.row_stride * std::int64_t(sizeof(T))};
}

// Small whole numbers, so that sums of every type are exact.
template <class T>
Matrix<T> small_numbers(std::int64_t rows, std::int64_t cols, Random& random) {
  Matrix<T> m(rows, cols);
  for (T& v : m.elements()) v = T(float(random.below(5)) - 2.0f);
  return m;
}

device::Machine small_machine(std::int64_t tiles) {
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = tiles;
  return machine;
}

// One pass with random operands on one machine.
template <class T>
struct DenseCase {
  DenseCase(const Problem& problem, Pass pass, const device::Machine& on, std::uint64_t seed = 1)
      : machine(on),
        plan(planner::plan_dense_or_throw(problem, on)),
        product(plan.find(pass)->product) {
    Random random(seed);
    const auto [rows, inner, columns] = product.size;
    const std::int64_t g = problem.size.g;
    left = product.left_transposed ? small_numbers<T>(g * inner, rows, random)
                                   : small_numbers<T>(g * rows, inner, random);
    right = product.right_transposed ? small_numbers<T>(g * columns, inner, random)
                                     : small_numbers<T>(g * inner, columns, random);
  }

  Matrix<T> run(device::ExchangeMode mode, int threads = 1, const PassOptions& options = {}) {
    const auto executor = make_executor(threads);
    OwnPass<DensePass> pass(machine, mode, *executor, plan, product.pass);
    Matrix<T> out(plan.groups * product.size.rows, product.size.columns);
    const DenseArrays arrays{bytes(left.view()), bytes(right.view()), bytes(out.view())};
    EXPECT_TRUE(pass.run(options, ledger, arrays));
    EXPECT_LE(pass.memory().high_water(), plan.cost.temp + plan.cost.resident);
    return out;
  }

  float term(std::int64_t g, std::int64_t row, std::int64_t k, std::int64_t column) const {
    const auto [rows, inner, columns] = product.size;
    const float a =
        product.left_transposed ? float(left(g * inner + k, row)) : float(left(g * rows + row, k));
    const float b = product.right_transposed ? float(right(g * columns + column, k))
                                             : float(right(g * inner + k, column));
    return a * b;
  }

  void expect_right(const Matrix<T>& out) const {
    const auto [rows, inner, columns] = product.size;
    for (std::int64_t g = 0; g < plan.groups; ++g)
      for (std::int64_t row = 0; row < rows; ++row)
        for (std::int64_t column = 0; column < columns; ++column) {
          float sum = 0;
          for (std::int64_t k = 0; k < inner; ++k) sum += term(g, row, k, column);
          ASSERT_EQ(float(out(g * rows + row, column)), float(T(sum)))
              << to_string(product.pass) << " " << g << " " << row << " " << column;
        }
  }

  const DensePassPlan& pass_plan() const { return *plan.find(product.pass); }

  device::Machine machine;
  DensePlan plan;
  PassProduct product;
  Matrix<T> left, right;
  device::Ledger ledger;
};

Problem layer(Dims size, DataType type) {
  return {.size = size, .data_type = type, .grad_a = true, .grad_w = true};
}

constexpr Pass kPasses[] = {Pass::Fwd, Pass::GradA, Pass::GradW};

template <class T>
class DensePassOf : public ::testing::Test {};
using Types = ::testing::Types<float, Half, BFloat16>;
TYPED_TEST_SUITE(DensePassOf, Types);

TYPED_TEST(DensePassOf, ComputesTheProductOfEveryPassInBothModes) {
  const Problem problem = layer({2, 37, 50, 29}, data_type_of<TypeParam>());
  for (const Pass pass : kPasses) {
    DenseCase<TypeParam> c(problem, pass, small_machine(24));
    const Matrix<TypeParam> shared = c.run(device::ExchangeMode::Share);
    const device::Ledger ledger = c.ledger;
    c.expect_right(shared);
    const Matrix<TypeParam> isolated = c.run(device::ExchangeMode::Isolate, 3);
    EXPECT_TRUE(std::ranges::equal(shared.elements(), isolated.elements(), [](auto a, auto b) {
      return float(a) == float(b);
    })) << to_string(pass);
    EXPECT_EQ(c.ledger, ledger) << to_string(pass);
  }
}

// The plan and the run get their cycles from the same formulas but from other code.
TEST(DensePass, TakesThePlannedCyclesInEveryPhase) {
  Random random(11);
  const auto any = [&](std::uint64_t most) { return 1 + std::int64_t(random.below(most)); };
  for (int i = 0; i < 24; ++i) {
    const Problem problem = layer({1, any(150), any(150), any(90)}, DataType::Float);
    const Pass pass = kPasses[i % 3];
    DenseCase<float> c(problem, pass, small_machine(any(40)));
    c.expect_right(c.run(device::ExchangeMode::Share));
    std::map<Phase, Cycles> planned, counted;
    for (const planner::CostTerm& term : c.pass_plan().cost.terms)
      planned[planner::phase_of(term.name, pass, false)] += term.cycles;
    for (const device::StepRecord& step : c.ledger.steps) {
      counted[step.phase] += step.cycles;
      counted[Phase::Overhead] += step.overhead;
    }
    for (const auto& [phase, cycles] : planned)
      EXPECT_EQ(counted[phase], cycles)
          << to_string(problem) << " " << to_string(pass) << " " << phase;
    EXPECT_EQ(c.ledger.total(), c.pass_plan().cost.cycles());
  }
}

// Tiles of 14 KiB cannot hold the slices of one round.
TEST(DensePass, RunsInRoundsIfTheTilesAreSmall) {
  device::Machine machine = small_machine(6);
  machine.tile_memory = Bytes(14 * 1024);
  for (const Pass pass : kPasses) {
    DenseCase<float> c(layer({1, 75, 50, 61}, DataType::Float), pass, machine);
    EXPECT_GT(c.pass_plan().rounds.product(), 1) << to_string(pass);
    for (const auto mode : {device::ExchangeMode::Share, device::ExchangeMode::Isolate})
      c.expect_right(c.run(mode));
    // Later rounds may be smaller, and smaller tiles a few cycles slower.
    EXPECT_LE(100 * c.ledger.total().value, 101 * c.pass_plan().cost.cycles().value);
    EXPECT_GE(100 * c.ledger.total().value, 90 * c.pass_plan().cost.cycles().value);
  }
}

std::vector<Bytes> fetched_bytes(const device::Ledger& ledger) {
  std::vector<Bytes> bytes;
  for (const device::StepRecord& step : ledger.steps)
    if (step.phase == Phase::PreArrange) bytes.push_back(step.moved);
  return bytes;
}

// The left operand stays for all columns of its rows, the right one if there is one range of them.
TEST(DensePass, FetchesAnOperandAgainOnlyIfTheRoundNeedsAnotherSlice) {
  const Problem problem = layer({1, 64, 48, 64}, DataType::Float);
  const auto bytes_in_rounds = [&](std::int64_t rows, std::int64_t columns) {
    DenseCase<float> c(problem, Pass::Fwd, small_machine(16));
    c.plan.passes[0].rounds = {rows, 1, columns};
    c.plan.cost.resident = c.machine.tile_memory;  // the planned bytes are those of one round
    c.expect_right(c.run(device::ExchangeMode::Isolate));
    c.expect_right(c.run(device::ExchangeMode::Share));
    return fetched_bytes(c.ledger);
  };
  for (const auto& bytes : {bytes_in_rounds(1, 4), bytes_in_rounds(4, 1)}) {
    ASSERT_EQ(bytes.size(), 4u);
    for (std::size_t i = 1; i < bytes.size(); ++i) EXPECT_LT(bytes[i], bytes[0]);
  }
  const auto bytes = bytes_in_rounds(2, 2);
  ASSERT_EQ(bytes.size(), 4u);
  EXPECT_LT(bytes[1], bytes[0]);
  EXPECT_EQ(bytes[2], bytes[0]);
  EXPECT_EQ(bytes[3], bytes[1]);
}

TEST(DensePass, RunsOnOneTileWithoutAnExchange) {
  DenseCase<float> c(layer({1, 9, 5, 3}, DataType::Float), Pass::Fwd, small_machine(1));
  c.expect_right(c.run(device::ExchangeMode::Share));
  for (const device::StepRecord& step : c.ledger.steps) EXPECT_EQ(step.moved, Bytes(0));
  EXPECT_EQ(c.ledger.total(), c.pass_plan().cost.cycles());
}

TEST(DensePass, RefusesArraysOfAnotherSize) {
  DenseCase<float> c(layer({1, 9, 5, 3}, DataType::Float), Pass::Fwd, small_machine(4));
  const auto executor = make_executor(1);
  OwnPass<DensePass> pass(c.machine, device::ExchangeMode::Share, *executor, c.plan, Pass::Fwd);
  Matrix<float> out(9, 3), wrong(9, 4);
  DenseArrays arrays{bytes(c.left.view()), bytes(c.right.view()), bytes(out.view())};
  arrays.out = bytes(wrong.view());
  EXPECT_THROW(pass.run({}, c.ledger, arrays), Error);
  const DensePlan forward = planner::plan_dense_or_throw({.size = {1, 9, 5, 3}}, c.machine);
  EXPECT_THROW(
      OwnPass<DensePass>(c.machine, device::ExchangeMode::Share, *executor, forward, Pass::GradW),
      Error);
}

}  // namespace
}  // namespace tessera::runtime::internal
