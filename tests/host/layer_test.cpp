#include "tessera/host/layer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/aligned_vector.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/host/cells.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/support/failing_allocations.hpp"
#include "tessera/tests/support/message_of.hpp"
#include "tessera/tests/support/trials.hpp"
#include "tessera/verify/verify.hpp"

namespace tessera::host {
namespace {

using host::HostCpu;
using test::refusal;

// Caches so small that even little layers have many cells and panels.
const HostCpu kTiny{.cores = 2, .l1_data = Bytes(2048), .l2 = Bytes(16384), .l3 = Bytes()};
const HostCpu kUsual{
    .cores = 2, .l1_data = Bytes(32 << 10), .l2 = Bytes(1 << 20), .l3 = Bytes(32 << 20)};

struct HostCase {
  Dims size{1, 70, 90, 40};
  BlockShape block;
  double density = 0.2;
  HostCpu cpu = kTiny;
  int threads = 2;

  std::string name() const {
    return to_string(size) + " block " + std::to_string(block.rows) + "x" +
           std::to_string(block.cols) + " density " + std::to_string(density) + " L1 " +
           std::to_string(cpu.l1_data.value) + " seed 3";
  }
  template <class T>
  Problem problem() const {
    return {.size = size,
            .block = block,
            .density = density,
            .data_type = data_type_of<T>(),
            .grad_a = true,
            .grad_w = true};
  }
  std::vector<sparse::Csr<float>> weights() const {
    const Dims whole = Problem{.size = size, .block = block}.size_in_blocks();
    std::vector<sparse::Csr<float>> all;
    for (std::int64_t g = 0; g < size.g; ++g)
      all.push_back(sparse::random_pattern(whole.x, whole.y, block, density, std::uint64_t(3 + g)));
    return all;
  }
};

// The matrix without what lies beyond the layer: a view of rows and columns that are there.
template <class T>
Matrix<T> with_rows(MatrixView<const T> from, std::int64_t rows) {
  Matrix<T> to(rows, from.cols);
  for (std::int64_t r = 0; r < std::min(rows, from.rows); ++r)
    for (std::int64_t c = 0; c < from.cols; ++c) to(r, c) = from(r, c);
  return to;
}

template <class T>
struct Results {
  Matrix<T> q, s_grad;
  std::vector<float> gradients;

  friend bool operator==(const Results&, const Results&) = default;
};

template <class T>
struct HostRun {
  HostCase host;
  std::vector<sparse::Csr<float>> weights = host.weights();
  std::unique_ptr<Executor> executor = make_executor(host.threads);
  HostLayer layer{host.problem<T>(), host.cpu, *executor};
  Matrix<T> s = random_matrix<T>(host.size.g * host.size.y, host.size.z, 5);
  Matrix<T> q_grad = random_matrix<T>(host.size.g * host.size.x, host.size.z, 6);
  Results<T> results{Matrix<T>(q_grad.rows(), host.size.z), Matrix<T>(s.rows(), host.size.z), {}};

  explicit HostRun(const HostCase& c) : host(c) {
    layer.set_weights(sparse::checked(weights));
    results.gradients.resize(std::size_t(layer.values()));
  }
  const Results<T>& run() {
    const auto in_s = std::as_const(s).view(), in_q = std::as_const(q_grad).view();
    layer.forward<T>(in_s, results.q.view());
    layer.grad_a<T>(in_q, results.s_grad.view());
    layer.grad_w<T>(in_q, in_s, results.gradients);
    return results;
  }
};

constexpr std::int64_t kPartials = 64;  // more than the cells of a row here

// Rows beyond the layer are zeros in its operands; those of the result are not looked at.
template <class T>
void expect_product(const sparse::Csr<float>& matrix, MatrixView<const T> in,
                    MatrixView<const T> out) {
  const Matrix<T> whole_in = with_rows(in, matrix.cols);
  std::vector<std::int64_t> begin = matrix.row_begin;
  const sparse::Csr<float> elements = sparse::with_block(matrix, {1, 1});
  Matrix<T> whole_out(matrix.rows, in.cols);
  // Elements beyond the result are those of the reference, in double.
  for (std::int64_t r = 0; r < matrix.rows; ++r)
    for (std::int64_t z = 0; z < in.cols; ++z) {
      double sum = 0;
      if (r >= out.rows)
        for (auto i = elements.row_begin[std::size_t(r)];
             i < elements.row_begin[std::size_t(r) + 1]; ++i)
          sum += double(elements.values[std::size_t(i)]) *
                 double(float(whole_in(elements.col[std::size_t(i)], z)));
      whole_out(r, z) = r < out.rows ? out(r, z) : T(float(sum));
    }
  const verify::Verdict verdict =
      verify::verify_product<T>(matrix, whole_in.view(), std::as_const(whole_out).view(),
                                {data_type_of<T>(), DataType::Float, kPartials});
  EXPECT_TRUE(verdict.ok()) << to_string(verdict);
  EXPECT_EQ(verdict.compared, matrix.rows * in.cols);
}

template <class T>
void expect_right(const HostCase& c) {
  SCOPED_TRACE(c.name());
  HostRun<T> run(c);
  const Results<T>& results = run.run();
  std::size_t first = 0;
  for (std::int64_t g = 0; g < c.size.g; ++g) {
    const sparse::Csr<float>& weights = run.weights[std::size_t(g)];
    const Range x{g * c.size.x, (g + 1) * c.size.x}, y{g * c.size.y, (g + 1) * c.size.y};
    const Range z{0, c.size.z};
    const auto s = std::as_const(run.s).view().sub(y, z);
    const auto q_grad = std::as_const(run.q_grad).view().sub(x, z);
    expect_product<T>(weights, s, results.q.view().sub(x, z));
    expect_product<T>(sparse::transpose(weights), q_grad, results.s_grad.view().sub(y, z));
    sparse::Csr<float> gradient = weights;
    std::copy_n(results.gradients.begin() + std::ptrdiff_t(first), weights.values.size(),
                gradient.values.begin());
    first += weights.values.size();
    const Matrix<T> whole_q = with_rows(q_grad, weights.rows), whole_s = with_rows(s, weights.cols);
    const verify::Verdict verdict =
        verify::verify_gradient<T>(weights, gradient, whole_q.view(), whole_s.view(),
                                   {DataType::Float, DataType::Float, kPartials});
    EXPECT_TRUE(verdict.ok()) << to_string(verdict);
  }
}

TEST(HostLayer, IsRightAtEveryRemainderOfTheBatch) {
  for (const std::int64_t z : {1, 2, 3, 5, 8, 15, 16, 17, 33, 63, 64, 65, 129, 257, 300})
    for (const HostCpu& cpu : {kTiny, kUsual}) {
      expect_right<float>({.size = {1, 50, 70, z}, .cpu = cpu});
      expect_right<Half>({.size = {1, 50, 70, z}, .cpu = cpu});
      expect_right<BFloat16>({.size = {1, 50, 70, z}, .cpu = cpu});
    }
}

TEST(HostLayer, IsRightForBlocksOfAnyShapeAndSizesThatAreNoMultiple) {
  test::Cases cases;
  for (const BlockShape block : {BlockShape{4, 4}, {8, 8}, {16, 16}, {3, 5}, {1, 7}, {17, 2}})
    for (const std::int64_t z : {1, 7, 64, 130, 600})
      for (const HostCpu& cpu : {kTiny, kUsual}) {
        if (!cases.next()) continue;
        expect_right<float>({.size = {1, 71, 93, z}, .block = block, .cpu = cpu});
        expect_right<Half>({.size = {1, 48, 64, z}, .block = block, .cpu = cpu});
        expect_right<BFloat16>({.size = {1, 48, 64, z}, .block = block, .cpu = cpu});
      }
}

TEST(HostLayer, IsRightForLargeBlocksIn16Bits) {
  expect_right<Half>({.size = {1, 100, 90, 5}, .block = {48, 40}, .density = 0.5});
  expect_right<Half>({.size = {1, 5, 3000, 5}, .block = {2, 1500}, .density = 0.5});
  expect_right<BFloat16>({.size = {1, 3000, 5, 5}, .block = {1500, 2}, .density = 0.5});
}

TEST(HostLayer, IsRightForLayersOfOneElementAndNoneAndAll) {
  for (const double density : {0.0, 1.0})
    for (const Dims size : {Dims{1, 1, 1, 1}, {1, 1, 100, 70}, {1, 100, 1, 70}, {1, 33, 31, 70}})
      expect_right<float>({.size = size, .density = density});
}

// Rows without non-zeros, in the first cell or in all, must not keep what they held.
TEST(HostLayer, WritesAllOfItsResults) {
  for (const BlockShape block : {BlockShape{1, 1}, {4, 4}, {16, 16}})
    for (const std::int64_t z : {1, 40, 700}) {
      const HostCase c{.size = {1, 96, 400, z}, .block = block, .density = 0.01};
      SCOPED_TRACE(c.name());
      HostRun<float> run(c);
      const Results<float> expected = run.run();
      std::fill(run.results.q.elements().begin(), run.results.q.elements().end(), 7.0f);
      std::fill(run.results.s_grad.elements().begin(), run.results.s_grad.elements().end(), 7.0f);
      std::fill(run.results.gradients.begin(), run.results.gradients.end(), 7.0f);
      EXPECT_EQ(run.run(), expected);
    }
}

// Rows of the results are pages apart and whole cache lines, and no cache holds them, so they are
// written past the caches. Rows without non-zeros must not keep what they held.
TEST(HostLayer, WritesLargeResultsPastTheCaches) {
  for (const double density : {0.02, 0.2, 0.7})
    for (const std::int64_t z : {1024, 1040, 2032}) {
      const HostCase c{.size = {1, 90, 24, z}, .density = density};
      expect_right<float>(c);
      HostRun<float> run(c);
      const Results<float> expected = run.run();
      std::fill(run.results.q.elements().begin(), run.results.q.elements().end(), 7.0f);
      EXPECT_EQ(run.run(), expected) << c.name();
    }
}

TEST(HostLayer, KeepsGroupsApart) {
  expect_right<float>({.size = {3, 20, 30, 70}});
  expect_right<Half>({.size = {2, 20, 31, 5}, .block = {4, 4}});
}

TEST(HostLayer, GivesTheSameBitsForAnyNumberOfThreads) {
  for (const BlockShape block : {BlockShape{1, 1}, {4, 4}})
    for (const std::int64_t z : {1, 40, 150, 600}) {
      HostCase c{.size = {1, 120, 150, z}, .block = block, .threads = 1};
      SCOPED_TRACE(c.name());
      const Results<float> alone = HostRun<float>(c).run();
      c.threads = 4;
      EXPECT_EQ(HostRun<float>(c).run(), alone);
    }
}

TEST(HostLayer, ReadsAndWritesAnyView) {
  const HostCase c{.size = {1, 30, 40, 70}};
  HostRun<float> run(c);
  const Results<float> expected = run.run();
  Matrix<float> s_turned(c.size.z, c.size.y), q_turned(c.size.z, c.size.x);
  for (std::int64_t y = 0; y < c.size.y; ++y)
    for (std::int64_t z = 0; z < c.size.z; ++z) s_turned(z, y) = run.s(y, z);
  run.layer.forward<float>(std::as_const(s_turned).view().transposed(),
                           q_turned.view().transposed());
  for (std::int64_t x = 0; x < c.size.x; ++x)
    for (std::int64_t z = 0; z < c.size.z; ++z) ASSERT_EQ(q_turned(z, x), expected.q(x, z));
}

TEST(HostLayer, TakesNewValuesInAllPasses) {
  HostCase c{.size = {1, 40, 48, 20}, .block = {2, 3}};
  HostRun<float> run(c);
  const Results<float> ones = run.run();
  std::vector<float> values = run.weights[0].values;
  for (float& v : values) v *= 2;
  run.layer.set_values(values);
  const Results<float>& twice = run.run();
  for (std::int64_t x = 0; x < c.size.x; ++x)
    for (std::int64_t z = 0; z < c.size.z; ++z) ASSERT_EQ(twice.q(x, z), 2 * ones.q(x, z));
  for (std::int64_t y = 0; y < c.size.y; ++y)
    for (std::int64_t z = 0; z < c.size.z; ++z)
      ASSERT_EQ(twice.s_grad(y, z), 2 * ones.s_grad(y, z));
  EXPECT_EQ(twice.gradients, ones.gradients);
}

TEST(HostLayer, KeepsAMatrixThatItIsGivenInsteadOfACopy) {
  HostRun<float> copied(HostCase{}), kept(HostCase{});
  sparse::Csr<float> matrix = copied.weights[0];
  const float* const values = matrix.values.data();
  kept.layer.set_weights(std::move(matrix));
  EXPECT_EQ(kept.layer.weights(0).values.data(), values);
  EXPECT_TRUE(kept.run() == copied.run());
}

TEST(HostLayer, AllocatesNothingAfterTheFirstCall) {
  for (const int threads : {1, 2}) {
    HostRun<float> run({.size = {1, 100, 120, 150}, .threads = threads});
    run.run();
    const long before = test::allocations();
    for (int i = 0; i < 3; ++i) run.run();
    EXPECT_EQ(test::allocations() - before, 0) << threads << " threads";
  }
}

TEST(HostLayer, MeasuresItself) {
  HostRun<float> run({.size = {1, 200, 200, 150}, .threads = 1});
  const HostTimes times =
      run.layer.forward<float>(std::as_const(run.s).view(), run.results.q.view());
  EXPECT_GT(times.kernel_seconds, 0);
  EXPECT_GT(times.copy_seconds, 0);
  EXPECT_GE(times.seconds, times.kernel_seconds + times.copy_seconds);
}

TEST(HostLayer, DoesNotDivideTheTimeOfSmallPasses) {
  HostRun<float> run({.size = {1, 100, 100, 20}, .threads = 1});
  ASSERT_GT(run.layer.values() * 20, 1 << 12);
  const auto expect_undivided = [](const HostTimes& times) {
    EXPECT_GT(times.seconds, 0);
    EXPECT_EQ(times.kernel_seconds, times.seconds);
    EXPECT_EQ(times.copy_seconds, 0);
  };
  const auto s = std::as_const(run.s).view(), q_grad = std::as_const(run.q_grad).view();
  expect_undivided(run.layer.forward<float>(s, run.results.q.view()));
  std::vector<float> gradient(std::size_t(run.layer.values()));
  expect_undivided(run.layer.grad_w<float>(q_grad, s, gradient));
}

// The bounds of each value are those of host/README.md; cells are padded to the fullest one.
TEST(HostLayer, CountsTheMemoryOfTheMatrixAndOfEachPass) {
  const auto bytes_per_value = [](Problem problem) {
    const auto executor = make_executor(1);
    HostLayer layer(problem, kUsual, *executor);
    EXPECT_EQ(layer.memory_bytes(), 0);
    layer.set_weights(
        sparse::random_pattern(problem.size.x, problem.size.y, problem.block, 0.1, /*seed=*/1));
    return double(layer.memory_bytes()) / double(layer.values());
  };
  Problem problem{.size = {1, 1024, 1024, 64}, .density = 0.1, .data_type = DataType::Float};
  problem.grad_a = problem.grad_w = false;
  const double forward = bytes_per_value(problem);
  EXPECT_GE(forward, 8 + 10);
  EXPECT_LE(forward, 8 + 12 + 2);
  problem.grad_a = problem.grad_w = true;
  const double all = bytes_per_value(problem);
  EXPECT_GE(all, forward + 10);
  EXPECT_LE(all, forward + 12 + 4);  // GradW reads the matrix itself
  problem.block = {16, 16};
  const double in_blocks = bytes_per_value(problem);
  EXPECT_GE(in_blocks, 4 + 4 + 4);
  EXPECT_LE(in_blocks, 1.4 * (4 + 4 + 4));
}

// Operands that do not begin at a cache line are copied by some passes; the results are the same.
TEST(HostLayer, GivesTheSameBitsWhereverTheOperandsBegin) {
  for (const BlockShape block : {BlockShape{1, 1}, {4, 4}})
    for (const std::int64_t z : {33, 128, 300}) {
      SCOPED_TRACE(testing::Message() << block.rows << "x" << block.cols << ", z " << z);
      const Problem problem{
          .size = {1, 64, 96, z}, .block = block, .data_type = DataType::Float, .grad_w = true};
      const auto executor = make_executor(2);
      HostLayer layer(problem, kUsual, *executor);
      layer.set_weights(sparse::random_pattern(64, 96, block, 0.3, /*seed=*/1));
      const Matrix<float> q_grad = random_matrix<float>(64, z, 2),
                          s = random_matrix<float>(96, z, 3);
      std::vector<float> expected(std::size_t(layer.values()));
      layer.grad_w<float>(q_grad.view(), s.view(), expected);
      for (const std::int64_t shift : {1, 4, 16}) {
        AlignedVector<float> moved(std::size_t(shift + 96 * z));
        std::copy_n(s.view().data, 96 * z, moved.begin() + shift);
        const MatrixView<const float> view{moved.data() + shift, 96, z, z, 1};
        std::vector<float> gradients(expected.size(), -1.0f);
        layer.grad_w<float>(q_grad.view(), view, gradients);
        EXPECT_EQ(gradients, expected) << "shift " << shift;
      }
    }
}

TEST(HostLayer, RefusesWhatCannotBeAndSaysWhy) {
  HostRun<float> run({.size = {1, 10, 12, 5}});
  const auto s = std::as_const(run.s).view();
  const auto q = run.results.q.view();
  EXPECT_EQ(refusal([&] { run.layer.forward<float>(s.sub({0, 11}, {0, 5}), q); }),
            "s is 11 x 5; this layer needs 12 rows and any number of columns");
  const Matrix<Half> half_s(12, 5);
  Matrix<Half> half_q(10, 5);
  EXPECT_EQ(refusal([&] { run.layer.forward<Half>(half_s.view(), half_q.view()); }),
            "forward: operands are half but the layer is float");
  EXPECT_EQ(
      refusal([&] { run.layer.forward<float>(MatrixView<const float>{nullptr, 12, 5, 5}, q); }),
      "forward: s has 12 x 5 elements at a null pointer; pass a view of memory");
  EXPECT_NE(refusal([&] { run.layer.set_values(std::vector<float>(3)); }), "");
  EXPECT_NE(refusal([&] { run.layer.set_weights(sparse::Csr<float>()); }), "");
  std::vector<float> few(2);
  EXPECT_NE(refusal([&] { run.layer.grad_w<float>(std::as_const(run.q_grad).view(), s, few); }),
            "");
  Problem problem = run.host.problem<float>();
  problem.grad_a = false;
  HostLayer forward_only(problem, kUsual, *run.executor);
  EXPECT_EQ(refusal([&] { forward_only.forward<float>(s, q); }), "forward: call set_weights first");
  forward_only.set_weights(sparse::checked(run.weights));
  EXPECT_EQ(
      refusal([&] { forward_only.grad_a<float>(std::as_const(run.q_grad).view(), run.s.view()); }),
      "grad_a: the problem does not include this pass");
  EXPECT_EQ(
      refusal([&] { HostLayer(problem, kUsual, *run.executor, {.blocks_in_row = std::nan("")}); }),
      "host layer: blocks_in_row is nan; it must be finite and at least 0");
}

TEST(HostLayer, RefusesWeightsThatItsTypeCannotHoldAndKeepsTheOldOnes) {
  HostRun<Half> run({.size = {1, 10, 12, 5}});
  sparse::Csr<float> large = run.layer.weights();
  const std::vector<float> before(large.values.begin(), large.values.end());
  large.values.back() = 70000.0f;
  EXPECT_THROW(run.layer.set_weights(large), Error);
  EXPECT_THROW(run.layer.set_values(large.values), Error);
  EXPECT_EQ(run.layer.weights().values, before);
  large.values.back() = std::numeric_limits<float>::infinity();  // of the caller's own making
  EXPECT_NO_THROW(run.layer.set_values(large.values));
}

// Rows of NumPy's arrays begin 16 bytes past a cache line.
TEST(HostLayer, HasTheSameBitsWhereRowsDoNotBeginAtVectors) {
  const Dims size{1, 256, 512, 64};
  const auto executor = make_executor(1);
  HostLayer layer({.size = size, .density = 0.3, .data_type = DataType::Float}, read_host_cpu(),
                  *executor, {.dense = DenseChoice::Never});
  layer.set_weights(sparse::random_pattern(size.x, size.y, {1, 1}, 0.3, 3));
  const Matrix<float> s = random_matrix<float>(size.y, size.z, 5);
  AlignedVector<float> memory(std::size_t(size.y * size.z + 4));
  std::copy_n(s.view().data, size.y * size.z, memory.data() + 4);
  Matrix<float> aligned(size.x, size.z), unaligned(size.x, size.z);
  layer.forward<float>(s.view(), aligned.view());
  layer.forward<float>({memory.data() + 4, size.y, size.z, size.z}, unaligned.view());
  EXPECT_EQ(aligned, unaligned);
}

}  // namespace
}  // namespace tessera::host
