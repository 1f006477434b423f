// Products of a sparse and a dense matrix, over all their switches, against double precision.
#include "tessera/host/matmul.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/random.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/planner/layouts.hpp"
#include "tessera/runtime/matmul.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/planner/product_plan.hpp"
#include "tessera/verify/verify.hpp"

namespace tessera {
namespace {

using sparse::Csr;

// A product with its operands.
struct ProductCase {
  MatMulProblem problem;
  std::vector<Csr<float>> operands;  // one for each group, as they are stored
  std::uint64_t seed = 1;

  std::string name() const {
    return to_string(problem) + ", block " + std::to_string(problem.block.rows) + "x" +
           std::to_string(problem.block.cols) + ", " + to_string(problem.data_type) + ", seed " +
           std::to_string(seed);
  }
};

ProductCase drawn(MatMulProblem problem, std::uint64_t seed) {
  ProductCase c{problem, {}, seed};
  const MatrixShape shape = sparse_shape(problem);
  for (std::int64_t g = 0; g < problem.groups; ++g)
    c.operands.push_back(sparse::random_pattern(
        round_up(shape.rows, problem.block.rows), round_up(shape.cols, problem.block.cols),
        problem.block, g == 1 ? 0 : problem.density, seed + std::uint64_t(g)));
  return c;
}

// The matrix of a group, transposed if the product says so: read element by element.
template <class At>
Matrix<float> as_used(std::int64_t rows, std::int64_t cols, bool transposed, const At& at) {
  Matrix<float> used(rows, cols);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < cols; ++c) used(r, c) = transposed ? at(c, r) : at(r, c);
  return used;
}

Matrix<float> turned(const Matrix<float>& matrix) {
  return as_used(matrix.cols(), matrix.rows(), true,
                 [&](std::int64_t r, std::int64_t c) { return matrix(r, c); });
}

template <class T>
Matrix<T> in_type(const Matrix<float>& matrix) {
  Matrix<T> typed(matrix.rows(), matrix.cols());
  for (std::size_t i = 0; i < typed.elements().size(); ++i)
    typed.elements()[i] = T(matrix.elements()[i]);
  return typed;
}

// Expects that left * right = result within the bounds of the arithmetic; `sparse_left` is the
// operand whose rows are sums of few terms.
template <class T>
void expect_product(Matrix<float> left, Matrix<float> right, Matrix<float> result, SparseSide side,
                    const verify::Rounding& rounding) {
  if (side == SparseSide::Right) {
    std::swap(left, right);
    for (Matrix<float>* matrix : {&left, &right, &result}) *matrix = turned(*matrix);
  }
  const Csr<float> elements =
      sparse::from_dense<float>(std::as_const(left).view(), BlockShape{1, 1});
  const Matrix<T> in = in_type<T>(right), out = in_type<T>(result);
  const verify::Verdict verdict =
      verify::verify_product<T>(elements, in.view(), out.view(), rounding);
  EXPECT_EQ(verdict.compared, result.rows() * result.cols());
  EXPECT_TRUE(verdict.ok()) << to_string(verdict);
}

// Checks the result of every group; all indices are those of the definition of the product.
template <class T>
void expect_right_groups(const ProductCase& c, const Matrix<T>& dense, const Matrix<T>& result,
                         const verify::Rounding& rounding) {
  const MatMulProblem& p = c.problem;
  const bool left = p.side == SparseSide::Left;
  const MatrixShape in = dense_shape(p), out = result_shape(p);
  for (std::int64_t g = 0; g < p.groups; ++g) {
    SCOPED_TRACE("group " + std::to_string(g));
    const Matrix<float> stored = sparse::to_dense(c.operands[std::size_t(g)]);
    const auto sparse_at = [&](std::int64_t r, std::int64_t k) { return stored(r, k); };
    const auto dense_at = [&](std::int64_t r, std::int64_t k) {
      return float(dense(g * in.rows + r, k));
    };
    const Matrix<float> a = left ? as_used(p.m, p.k, p.transpose_lhs, sparse_at)
                                 : as_used(p.k, p.n, p.transpose_rhs, sparse_at);
    const bool dense_is_turned = left ? p.transpose_rhs : p.transpose_lhs;
    const Matrix<float> b = left ? as_used(p.k, p.n, dense_is_turned, dense_at)
                                 : as_used(p.m, p.k, dense_is_turned, dense_at);
    const Matrix<float> q = as_used(out.rows, out.cols, false, [&](std::int64_t r, std::int64_t k) {
      return float(result(g * out.rows + r, k));
    });
    expect_product<T>(left ? a : b, left ? b : a, q, p.side, rounding);
  }
}

template <class T>
Matrix<T> dense_operand(const ProductCase& c) {
  const MatrixShape shape = dense_shape(c.problem);
  return random_matrix<T>(c.problem.groups * shape.rows, shape.cols, c.seed + 7);
}

template <class T>
Matrix<T> empty_result(const ProductCase& c) {
  const MatrixShape shape = result_shape(c.problem);
  return Matrix<T>(c.problem.groups * shape.rows, shape.cols);
}

device::Machine small_machine() {
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = 24;
  return machine;
}

// Expects the planned cycles of the transposition in the ledger of a run.
void expect_planned_move(const planner::MatMulPlan& plan, const device::Ledger& ledger) {
  const auto& move = plan.move;
  Cycles run, overhead;
  std::int64_t steps = 0;
  for (const device::StepRecord& step : ledger.steps) {
    if (step.phase != Phase::TransposeOperand) continue;
    run += step.cycles;
    overhead += step.overhead;
    ++steps;
  }
  EXPECT_EQ(steps, move ? 3 : 0);
  if (!move) return;
  EXPECT_EQ(run, move->arrange + move->exchange + move->transpose);
  EXPECT_EQ(overhead, move->waiting);
}

template <class T>
void expect_right_on_machine(const ProductCase& c) {
  const device::Machine machine = small_machine();
  const auto executor = make_executor(2);
  const planner::MatMulPlan plan = test::product_plan(c.problem, machine);
  const Matrix<T> dense = dense_operand<T>(c);
  std::vector<Matrix<T>> results;
  std::vector<device::Ledger> ledgers;
  for (const auto mode : {device::ExchangeMode::Share, device::ExchangeMode::Isolate}) {
    runtime::MatMul product(plan, machine, mode, *executor);
    if (const auto misfit = product.set_sparse(c.operands)) GTEST_SKIP() << misfit->message;
    results.push_back(empty_result<T>(c));
    ledgers.push_back(product.multiply<T>(dense.view(), results.back().view()));
  }
  const std::int64_t sums =
      plan.layer.dense ? plan.layer.tiles_used() : planner::partial_sums(plan.layer, Pass::Fwd);
  expect_right_groups<T>(c, dense, results[0],
                         {c.problem.data_type, c.problem.partials_type, sums});
  EXPECT_TRUE(results[0] == results[1]) << "Share and Isolate differ";
  EXPECT_EQ(ledgers[0], ledgers[1]);
  expect_planned_move(plan, ledgers[0]);
}

template <class T>
void expect_right_on_host(const ProductCase& c) {
  const auto executor = make_executor(2);
  host::MatMul product(c.problem, host::read_host_cpu(), *executor);
  product.set_sparse(c.operands);
  const Matrix<T> dense = dense_operand<T>(c);
  Matrix<T> result = empty_result<T>(c);
  product.multiply<T>(dense.view(), result.view());
  expect_right_groups<T>(c, dense, result, product.layer().rounding(Pass::Fwd));
}

void expect_right(const ProductCase& c) {
  SCOPED_TRACE(c.name());
  with_type(c.problem.data_type, [&]<class T>(T) {
    expect_right_on_machine<T>(c);
    expect_right_on_host<T>(c);
  });
}

MatMulProblem random_problem(Random& random) {
  constexpr std::int64_t kSizes[] = {1, 2, 7, 16, 31, 48, 61};
  constexpr BlockShape kBlocks[] = {{1, 1}, {1, 1}, {4, 4}, {8, 8}, {2, 4}, {16, 16}};
  constexpr DataType kTypes[] = {DataType::Float, DataType::Half, DataType::BFloat16};
  const auto pick = [&](const auto& choices) {
    return choices[std::size_t(random.below(std::ssize(choices)))];
  };
  return {.groups = 1 + std::int64_t(random.below(3)),
          .m = pick(kSizes),
          .k = pick(kSizes),
          .n = pick(kSizes),
          .side = random.below(2) == 0 ? SparseSide::Left : SparseSide::Right,
          .block = pick(kBlocks),
          .density = double(random.below(5)) / 4,
          .data_type = pick(kTypes),
          .transpose_lhs = random.below(2) == 0,
          .transpose_rhs = random.below(2) == 0};
}

TEST(MatMul, AgreesWithDoublePrecisionOverAllSwitches) {
  Random random(5);
  for (std::uint64_t i = 0; i < 60; ++i) expect_right(drawn(random_problem(random), i + 1));
}

// Every combination of the switches once, with several groups.
TEST(MatMul, TakesEveryCombinationOfSidesAndTransposes) {
  for (int bits = 0; bits < 16; ++bits)
    expect_right(drawn({.groups = 2,
                        .m = 12,
                        .k = 20,
                        .n = 9,
                        .side = (bits & 1) != 0 ? SparseSide::Left : SparseSide::Right,
                        .block = (bits & 8) != 0 ? BlockShape{4, 4} : BlockShape{1, 1},
                        .density = 0.5,
                        .data_type = DataType::Float,
                        .transpose_lhs = (bits & 2) != 0,
                        .transpose_rhs = (bits & 4) != 0},
                       std::uint64_t(bits) + 1));
}

TEST(MatMul, GroupsHaveTheResultsThatTheyHaveAlone) {
  MatMulProblem p{.groups = 3,
                  .m = 24,
                  .k = 40,
                  .n = 6,
                  .density = 0.3,
                  .data_type = DataType::Float,
                  .transpose_rhs = true};
  const auto c = drawn(p, 3);
  const auto executor = make_executor(2);
  host::MatMul all(p, host::read_host_cpu(), *executor);
  all.set_sparse(c.operands);
  const Matrix<float> dense = dense_operand<float>(c);
  Matrix<float> together = empty_result<float>(c);
  all.multiply<float>(dense.view(), together.view());
  p.groups = 1;
  for (std::int64_t g = 0; g < 3; ++g) {
    host::MatMul one(p, host::read_host_cpu(), *executor);
    one.set_sparse(c.operands[std::size_t(g)]);
    Matrix<float> alone(p.m, p.n);
    one.multiply<float>(dense.view().sub({g * p.n, (g + 1) * p.n}, {0, p.k}), alone.view());
    for (std::int64_t r = 0; r < p.m; ++r)
      for (std::int64_t z = 0; z < p.n; ++z) EXPECT_EQ(alone(r, z), together(g * p.m + r, z));
  }
}

TEST(MatMul, TakesAnOperandWithNewValues) {
  for (const bool transpose : {false, true}) {
    auto c = drawn({.m = 16,
                    .k = 24,
                    .n = 3,
                    .density = 0.4,
                    .data_type = DataType::Float,
                    .transpose_lhs = transpose},
                   9);
    const device::Machine machine = small_machine();
    const auto executor = make_executor(1);
    runtime::MatMul product(test::product_plan(c.problem, machine), machine,
                            device::ExchangeMode::Share, *executor);
    ASSERT_FALSE(product.set_sparse(c.operands));
    float value = 1;
    for (float& v : c.operands[0].values) v = value++;
    ASSERT_FALSE(product.set_sparse(c.operands));
    const Matrix<float> dense = dense_operand<float>(c);
    Matrix<float> result = empty_result<float>(c);
    product.multiply<float>(dense.view(), result.view());
    expect_right_groups<float>(c, dense, result, {DataType::Float, DataType::Float, 24});
  }
}

TEST(MatMul, ChargesTheMoveOfATransposedDenseOperandAlone) {
  const device::Machine machine = device::machine_preset("gc200");
  MatMulProblem p{.m = 512, .k = 512, .n = 64, .density = 0.1};
  const planner::MatMulPlan plain = test::product_plan(p, machine);
  EXPECT_FALSE(plain.move);
  p.transpose_lhs = true;  // the sparse operand is encoded in either form
  EXPECT_EQ(test::product_plan(p, machine).layer, plain.layer);
  p.transpose_rhs = true;
  const planner::MatMulPlan moved = test::product_plan(p, machine);
  ASSERT_TRUE(moved.move);
  EXPECT_EQ(moved.layer, plain.layer);
  EXPECT_GT(moved.move->cycles(), Cycles());
}

TEST(MatMul, CountsNonZerosInEachGroup) {
  const MatMulProblem p{.groups = 2, .m = 8, .k = 4, .n = 1};
  EXPECT_EQ(with_non_zeros(p, 8).density, 0.25);
  EXPECT_THROW(with_non_zeros(p, 33), Error);
  EXPECT_THROW(with_non_zeros(p, -1), Error);
}

TEST(MatMul, TheCutOfATranspositionCoversEveryElementOnce) {
  for (const std::int64_t tiles : {1, 3, 24, 1472})
    for (const MatrixShape shape : {MatrixShape{1, 1}, {7, 300}, {300, 7}, {64, 64}, {5000, 2}}) {
      device::Machine machine = small_machine();
      machine.tiles = tiles;
      const planner::TransposePlan plan =
          planner::plan_transpose(1, shape, DataType::Half, machine);
      EXPECT_LE(plan.row_parts * plan.col_parts, tiles);
      std::int64_t covered = 0;
      for (std::int64_t i = 0; i < plan.row_parts; ++i)
        for (std::int64_t j = 0; j < plan.col_parts; ++j)
          covered += plan.rows_of(i).size() * plan.cols_of(j).size();
      EXPECT_EQ(covered, shape.rows * shape.cols);
    }
}

// A flipped bit of the operand on its way is found, and the repaired run has the right result.
TEST(MatMul, AFaultInTheTranspositionIsFoundAndRepaired) {
  const auto c = drawn({.m = 16,
                        .k = 24,
                        .n = 8,
                        .density = 0.4,
                        .data_type = DataType::Float,
                        .transpose_rhs = true},
                       4);
  const device::Machine machine = small_machine();
  const auto executor = make_executor(1);
  runtime::MatMul product(test::product_plan(c.problem, machine), machine,
                          device::ExchangeMode::Isolate, *executor);
  ASSERT_FALSE(product.set_sparse(c.operands));
  const Matrix<float> dense = dense_operand<float>(c);
  Matrix<float> clean = empty_result<float>(c), result = clean;
  product.multiply<float>(dense.view(), clean.view());
  int found = 0;
  for (std::int64_t bit = 30; bit < 3000; bit += 64) {
    verify::Checksums checksums;
    std::optional<device::Struck> struck;
    device::Ledger ledger;
    runtime::TilePass options;
    options.pass.self_check = &checksums;
    options.pass.repair = true;
    options.tiles.fault = device::Fault{TileId(0), 2, bit};
    options.tiles.struck = &struck;
    ASSERT_TRUE(product.multiply<float>(dense.view(), result.view(), options, ledger));
    EXPECT_TRUE(result == clean);
    found += !checksums.first_failure.empty();
  }
  EXPECT_GT(found, 0);
}

TEST(MatMul, RefusesWhatIsNotAProduct) {
  const device::Machine machine = small_machine();
  EXPECT_THROW(check_matmul({.m = 0, .k = 4, .n = 4}), Error);
  EXPECT_THROW(check_matmul({.m = 4, .k = 4, .n = 4, .density = 1.5}), Error);
  const auto c = drawn({.m = 16, .k = 24, .n = 8, .density = 0.4, .data_type = DataType::Float}, 4);
  const auto executor = make_executor(1);
  runtime::MatMul product(test::product_plan(c.problem, machine), machine,
                          device::ExchangeMode::Share, *executor);
  Matrix<float> dense(24, 8), result(16, 8), other(8, 24);
  EXPECT_THROW(product.multiply<float>(dense.view(), result.view()), Error) << "no operand yet";
  EXPECT_THROW(product.set_sparse(sparse::transpose(c.operands[0])), Error);
  ASSERT_FALSE(product.set_sparse(c.operands));
  EXPECT_THROW(product.multiply<float>(other.view(), result.view()), Error);
  EXPECT_THROW(product.multiply<float>(dense.view(), dense.view()), Error);
  Matrix<Half> halves(24, 8), half_result(16, 8);
  EXPECT_THROW(product.multiply<Half>(halves.view(), half_result.view()), Error);
}

}  // namespace
}  // namespace tessera
