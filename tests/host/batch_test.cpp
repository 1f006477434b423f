// Batches of any width, and operands of any strides, against a double loop.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/host/spmm.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/support/failing_allocations.hpp"
#include "tessera/tests/support/message_of.hpp"
#include "tessera/tests/support/trials.hpp"
#include "tessera/verify/verify.hpp"

namespace tessera::host {
namespace {

using test::refusal;

// Caches so small that even little layers have many cells and panels.
const HostCpu kTiny{.cores = 2, .l1_data = Bytes(2048), .l2 = Bytes(16384), .l3 = Bytes()};
constexpr std::int64_t kX = 48, kY = 64;
constexpr std::int64_t kPartials = 128;  // more than the cells of a row and the panels here

struct BatchCase {
  std::int64_t planned = 40;
  BlockShape block;
  DenseChoice dense = DenseChoice::Never;
  bool own_dense_kernel = false;

  std::string name() const {
    return "planned for " + std::to_string(planned) + ", block " + std::to_string(block.rows) +
           (dense == DenseChoice::Never ? ""
            : own_dense_kernel          ? ", dense by our kernel"
                                        : ", dense");
  }
};

template <class T>
struct Operands {
  explicit Operands(std::int64_t z)
      : s(random_matrix<T>(kY, z, 5)), q_grad(random_matrix<T>(kX, z, 6)) {}

  Matrix<T> s, q_grad;
};

template <class T>
struct Results {
  Results(std::int64_t z, std::int64_t values)
      : q(kX, z), s_grad(kY, z), gradients(std::size_t(values)) {}

  Matrix<T> q, s_grad;
  std::vector<float> gradients;

  friend bool operator==(const Results&, const Results&) = default;
};

template <class T>
class BatchRun {
 public:
  explicit BatchRun(const BatchCase& c)
      : weights_(sparse::random_pattern(kX, kY, c.block, 0.6, 3)),
        layer_({.size = {1, kX, kY, c.planned},
                .block = c.block,
                .density = 0.6,
                .data_type = data_type_of<T>(),
                .grad_a = true,
                .grad_w = true},
               kTiny, *executor_, {.dense = c.dense, .own_dense_kernel = c.own_dense_kernel}) {
    layer_.set_weights(weights_);
  }

  HostLayer& layer() { return layer_; }
  Results<T> zeros(std::int64_t z) const { return {z, layer_.values()}; }

  void run_into(const Operands<T>& in, Results<T>& out) {
    layer_.forward<T>(in.s.view(), out.q.view());
    layer_.grad_a<T>(in.q_grad.view(), out.s_grad.view());
    layer_.grad_w<T>(in.q_grad.view(), in.s.view(), out.gradients);
  }
  Results<T> run(const Operands<T>& in) {
    Results<T> out = zeros(in.s.cols());
    run_into(in, out);
    return out;
  }
  void expect_right(const Operands<T>& in, const Results<T>& out) const {
    const verify::Rounding rounding{data_type_of<T>(), DataType::Float, kPartials};
    sparse::Csr<float> gradient = weights_;
    gradient.values = out.gradients;
    for (const verify::Verdict& verdict :
         {verify::verify_product<T>(weights_, in.s.view(), out.q.view(), rounding),
          verify::verify_product<T>(sparse::transpose(weights_), in.q_grad.view(),
                                    out.s_grad.view(), rounding),
          verify::verify_gradient<T>(weights_, gradient, in.q_grad.view(), in.s.view(),
                                     {DataType::Float, DataType::Float, kPartials})})
      EXPECT_TRUE(verdict.ok()) << to_string(verdict);
  }

 private:
  std::unique_ptr<Executor> executor_ = make_executor(2);
  sparse::Csr<float> weights_;
  HostLayer layer_;
};

std::vector<BatchCase> all_cases() {
  std::vector<BatchCase> cases;
  for (const std::int64_t planned : {1, 7, 40})
    for (const BlockShape block : {BlockShape{1, 1}, {4, 4}, {3, 2}})
      cases.push_back({planned, block});
  cases.push_back({40, {16, 16}});
  for (const bool own : {false, true}) cases.push_back({40, {4, 4}, DenseChoice::Always, own});
  return cases;
}

template <class T>
class HostBatch : public testing::Test {};
using AllTypes = testing::Types<float, Half, BFloat16>;
TYPED_TEST_SUITE(HostBatch, AllTypes);

TYPED_TEST(HostBatch, IsRightForEveryWidthUpToThreeTimesThePlannedOne) {
  tessera::test::Cases cases;
  for (const BatchCase& c : all_cases()) {
    SCOPED_TRACE(c.name());
    BatchRun<TypeParam> run(c);
    for (std::int64_t z = 1; z <= 3 * c.planned; ++z) {
      if (z % c.planned != 0 && !cases.next()) continue;
      SCOPED_TRACE(z);
      const Operands<TypeParam> in(z);
      run.expect_right(in, run.run(in));
      if (testing::Test::HasFailure()) return;
    }
  }
}

TYPED_TEST(HostBatch, ComputesNothingForNoColumnsAndGivesGradientsOfZero) {
  for (const BatchCase& c : all_cases()) {
    SCOPED_TRACE(c.name());
    BatchRun<TypeParam> run(c);
    Results<TypeParam> out = run.zeros(0);
    std::fill(out.gradients.begin(), out.gradients.end(), 7.0f);
    run.run_into(Operands<TypeParam>(0), out);
    EXPECT_EQ(out, run.zeros(0));
  }
}

// The view of a matrix whose element (r, c) lies at r * row_step + c * col_step from the first one
// (or, with negative steps, before it), in memory that belongs to the view.
template <class T>
struct Strided {
  std::vector<T> memory;
  MatrixView<T> view;

  Strided(std::int64_t rows, std::int64_t cols, std::int64_t row_step, std::int64_t col_step) {
    const std::int64_t down = (rows - 1) * row_step, across = (cols - 1) * col_step;
    const std::int64_t before = std::max<std::int64_t>({0, -down, -across, -down - across});
    memory.assign(
        std::size_t(before + std::max<std::int64_t>({0, down, across, down + across}) + 1),
        T(7.0f));
    view = {memory.data() + before, rows, cols, row_step, col_step};
  }
  void set(const Matrix<T>& from) {
    for (std::int64_t r = 0; r < view.rows; ++r)
      for (std::int64_t c = 0; c < view.cols; ++c) view(r, c) = from(r, c);
  }
  Matrix<T> matrix() const {
    Matrix<T> to(view.rows, view.cols);
    for (std::int64_t r = 0; r < view.rows; ++r)
      for (std::int64_t c = 0; c < view.cols; ++c) to(r, c) = view(r, c);
    return to;
  }
  std::size_t untouched() const {
    return std::size_t(std::count_if(memory.begin(), memory.end(),
                                     [](T element) { return float(element) == 7.0f; }));
  }
};

struct Steps {
  std::int64_t row, col;
};

// Rows first, the batch first, both with gaps, every second element, and backwards.
std::vector<Steps> steps_of(std::int64_t rows, std::int64_t cols) {
  return {{cols + 3, 1},    {1, rows},  {1, rows + 5}, {2 * cols, 2},    {2, 2 * rows + 1},
          {-(cols + 1), 1}, {cols, -1}, {-1, rows},    {1, -(rows + 2)}, {-1, -rows}};
}

TYPED_TEST(HostBatch, GivesTheSameBitsForOperandsOfAnyStrides) {
  for (const BatchCase& c : all_cases())
    for (const std::int64_t z : {1, 5, 40, 67}) {
      SCOPED_TRACE(testing::Message() << c.name() << ", " << z << " columns");
      BatchRun<TypeParam> run(c);
      const Operands<TypeParam> in(z);
      const Results<TypeParam> expected = run.run(in);
      const std::vector<Steps> x_steps = steps_of(kX, z), y_steps = steps_of(kY, z);
      for (std::size_t i = 0; i < x_steps.size(); ++i) {
        SCOPED_TRACE(testing::Message() << x_steps[i].row << ", " << x_steps[i].col);
        Strided<TypeParam> s(kY, z, y_steps[i].row, y_steps[i].col), s_grad = s;
        s_grad.view.data = s_grad.memory.data() + (s.view.data - s.memory.data());
        Strided<TypeParam> q(kX, z, x_steps[i].row, x_steps[i].col), q_grad = q;
        q_grad.view.data = q_grad.memory.data() + (q.view.data - q.memory.data());
        s.set(in.s);
        q_grad.set(in.q_grad);
        std::vector<float> gradients(expected.gradients.size());
        run.layer().template forward<TypeParam>(s.view, q.view);
        run.layer().template grad_a<TypeParam>(q_grad.view, s_grad.view);
        run.layer().template grad_w<TypeParam>(q_grad.view, s.view, gradients);
        EXPECT_EQ(q.matrix(), expected.q);
        EXPECT_EQ(s_grad.matrix(), expected.s_grad);
        EXPECT_EQ(gradients, expected.gradients);
        EXPECT_GE(q.untouched(), q.memory.size() - std::size_t(kX * z));
        EXPECT_GE(s_grad.untouched(), s_grad.memory.size() - std::size_t(kY * z));
      }
    }
}

// A dense library may allocate in every call, so dense passes are those of our kernel.
TYPED_TEST(HostBatch, AllocatesNothingWhenWidthsRepeat) {
  for (const BatchCase& c : all_cases()) {
    if (c.dense == DenseChoice::Always && !c.own_dense_kernel) continue;
    SCOPED_TRACE(c.name());
    BatchRun<TypeParam> run(c);
    std::vector<Operands<TypeParam>> in;
    std::vector<Results<TypeParam>> out;
    for (const std::int64_t z : {c.planned, c.planned / 2 + 1, 3 * c.planned}) {
      in.emplace_back(z);
      out.push_back(run.run(in.back()));
    }
    const long before = test::allocations();
    for (int i = 0; i < 2; ++i)
      for (std::size_t j = 0; j < in.size(); ++j) run.run_into(in[j], out[j]);
    EXPECT_EQ(test::allocations() - before, 0);
  }
}

TYPED_TEST(HostBatch, ChecksItselfAtEveryWidth) {
  for (const BatchCase& c : all_cases()) {
    SCOPED_TRACE(c.name());
    BatchRun<TypeParam> run(c);
    for (const std::int64_t z : {std::int64_t{1}, 3 * c.planned}) {
      const Operands<TypeParam> in(z);
      Results<TypeParam> out = run.zeros(z);
      verify::Checksums sums;
      const layer::PassOptions options{.self_check = &sums};
      HostTimes times;
      auto& layer = run.layer();
      EXPECT_TRUE(layer.template forward<TypeParam>(in.s.view(), out.q.view(), options, times));
      EXPECT_TRUE(
          layer.template grad_a<TypeParam>(in.q_grad.view(), out.s_grad.view(), options, times));
      EXPECT_TRUE(layer.template grad_w<TypeParam>(in.q_grad.view(), in.s.view(), out.gradients,
                                                   options, times));
    }
  }
}

TEST(HostBatchWidths, MustAgreeInOneCall) {
  BatchRun<float> run({});
  const Operands<float> five(5), six(6);
  Results<float> out = run.zeros(5);
  HostLayer& layer = run.layer();
  EXPECT_EQ(refusal([&] { layer.forward<float>(six.s.view(), out.q.view()); }),
            "s has 6 columns and q has 5; both must have those of the batch");
  EXPECT_EQ(refusal([&] { layer.grad_a<float>(six.q_grad.view(), out.s_grad.view()); }),
            "q_grad has 6 columns and s_grad has 5; both must have those of the batch");
  EXPECT_EQ(refusal([&] { layer.grad_w<float>(five.q_grad.view(), six.s.view(), out.gradients); }),
            "q_grad has 5 columns and s has 6; both must have those of the batch");
}

// The rows of the matrix that the layer keeps, from which spmm() computes the same sums.
void expect_whole_rows(BlockShape block, std::int64_t planned) {
  constexpr std::int64_t kRows = 704, kColumns = 912;
  const std::unique_ptr<Executor> executor = make_executor(2);
  const sparse::Csr<float> weights = sparse::random_pattern(kRows, kColumns, block, 0.9, 3);
  HostLayer layer({.size = {1, kRows, kColumns, planned},
                   .block = block,
                   .density = 0.9,
                   .data_type = DataType::Float,
                   .grad_a = true},
                  kTiny, *executor, {});
  layer.set_weights(weights);
  const auto expect_sums_of_rows = [&](MatrixView<const float> s, MatrixView<float> q) {
    const sparse::Csr<float>& kept = layer.weights(0);
    Matrix<float> expected(kRows, 1);
    spmm<float>(
        CompressedRows<float, std::int32_t, std::int64_t>{kRows, kColumns, block, kept.row_begin,
                                                          kept.col, kept.values},
        s, expected.view(), *executor);
    layer.forward<float>(s, q);
    for (std::int64_t r = 0; r < kRows; ++r) ASSERT_EQ(q(r, 0), expected(r, 0)) << "row " << r;
  };
  const Matrix<float> s = random_matrix<float>(kColumns, 3, 5);
  Matrix<float> q(kRows, 3), alone(kRows, 1);
  expect_sums_of_rows(s.view().sub({0, kColumns}, {1, 2}), q.view().sub({0, kRows}, {2, 3}));
  const Matrix<float> first = random_matrix<float>(kColumns, 1, 6);
  layer.set_values(std::vector<float>(weights.values.size(), 0.7f));
  expect_sums_of_rows(first.view(), alone.view());
  sparse::PatternChange change;
  change.removed.push_back({0, weights.col[0]});
  layer.update_weights(change);
  expect_sums_of_rows(first.view(), alone.view());
  const std::vector<float> bias(kRows, 0.25f);
  Matrix<float> biased(kRows, 1);
  layer.forward<float>(first.view(), biased.view(), {.bias = bias});
  EXPECT_EQ(biased(kRows - 1, 0), alone(kRows - 1, 0) + 0.25f);
}

TEST(HostBatchWidths, OfOneColumnReadWholeRowsOfTheMatrixThatWasGiven) {
  expect_whole_rows({1, 1}, 40);
  expect_whole_rows({16, 16}, 40);
  expect_whole_rows({8, 4}, 1);
}

// Rows that begin at cache lines are written past the caches, others are not.
TEST(HostBatchWidths, BeyondTheCachesHaveTheSameBitsInEveryRow) {
  constexpr std::int64_t kRows = 200, kColumns = 90, kBatch = 2048, kPadding = 16;
  const HostCpu cpu{.l1_data = Bytes(32 << 10), .l2 = Bytes(1 << 20), .l3 = Bytes(2 << 20)};
  const std::unique_ptr<Executor> executor = make_executor(2);
  HostLayer layer({.size = {1, kRows, kColumns, kBatch}, .data_type = DataType::Float}, cpu,
                  *executor, {});
  layer.set_weights(sparse::random_pattern(kRows, kColumns, {1, 1}, 0.1, 3));
  ASSERT_EQ(layer.cells(Pass::Fwd).y, kColumns);
  const Matrix<float> s = random_matrix<float>(kColumns, kBatch, 5);
  Matrix<float> aligned(kRows, kBatch), shifted(kRows, kBatch + kPadding);
  layer.forward<float>(s.view(), aligned.view());
  const MatrixView<float> others = shifted.view().sub({0, kRows}, {1, kBatch + 1});
  layer.forward<float>(s.view(), others);
  for (std::int64_t r = 0; r < kRows; ++r)
    for (std::int64_t z = 0; z < kBatch; ++z) ASSERT_EQ(aligned(r, z), others(r, z)) << r;
  for (std::int64_t r = 0; r < kRows; ++r) EXPECT_EQ(shifted(r, 0), 0) << r;
}

}  // namespace
}  // namespace tessera::host
