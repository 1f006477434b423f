#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/support/message_of.hpp"
#include "tessera/verify/verify.hpp"

namespace tessera::host {
namespace {

struct DenseCase {
  Dims size{1, 70, 90, 40};
  BlockShape block;
  HostOptions options{.dense = DenseChoice::Always};
  int threads = 2;
  double density = 0.3;
};

// All three passes of a layer whose sides are whole blocks; weights from seed 3, operands from 5
// and 6.
template <class T>
struct DenseRun {
  DenseCase dense;
  std::vector<sparse::Csr<float>> weights;
  std::unique_ptr<Executor> executor = make_executor(dense.threads);
  HostLayer layer{{.size = dense.size,
                   .block = dense.block,
                   .density = dense.density,
                   .data_type = data_type_of<T>(),
                   .grad_a = true,
                   .grad_w = true},
                  host::read_host_cpu(),
                  *executor,
                  dense.options};
  Matrix<T> s = random_matrix<T>(dense.size.g * dense.size.y, dense.size.z, 5);
  Matrix<T> q_grad = random_matrix<T>(dense.size.g * dense.size.x, dense.size.z, 6);
  Matrix<T> q{q_grad.rows(), q_grad.cols()}, s_grad{s.rows(), s.cols()};
  std::vector<float> gradients;

  explicit DenseRun(const DenseCase& c) : dense(c) {
    for (std::int64_t g = 0; g < c.size.g; ++g)
      weights.push_back(
          sparse::random_pattern(c.size.x, c.size.y, c.block, c.density, std::uint64_t(3 + g)));
    layer.set_weights(sparse::checked(weights));
    gradients.resize(std::size_t(layer.values()));
    run();
  }
  void run() {
    const auto in_s = std::as_const(s).view(), in_q = std::as_const(q_grad).view();
    layer.forward<T>(in_s, q.view());
    layer.grad_a<T>(in_q, s_grad.view());
    layer.grad_w<T>(in_q, in_s, gradients);
  }
};

void expect_ok(const verify::Verdict& verdict) { EXPECT_TRUE(verdict.ok()) << to_string(verdict); }

template <class T>
void expect_right(const DenseCase& c) {
  SCOPED_TRACE(to_string(c.size) + " block " + std::to_string(c.block.rows) + "x" +
               std::to_string(c.block.cols) + (c.options.own_dense_kernel ? " own kernel" : ""));
  const DenseRun<T> run(c);
  const verify::Rounding rounding{data_type_of<T>(), DataType::Float, 32};
  std::size_t first = 0;
  for (std::int64_t g = 0; g < c.size.g; ++g) {
    const sparse::Csr<float>& w = run.weights[std::size_t(g)];
    const Range x{g * c.size.x, (g + 1) * c.size.x}, y{g * c.size.y, (g + 1) * c.size.y};
    const Range z{0, c.size.z};
    const auto s = run.s.view().sub(y, z), q_grad = run.q_grad.view().sub(x, z);
    expect_ok(verify::verify_product<T>(w, s, run.q.view().sub(x, z), rounding));
    expect_ok(verify::verify_product<T>(sparse::transpose(w), q_grad, run.s_grad.view().sub(y, z),
                                        rounding));
    sparse::Csr<float> gradient = w;
    std::copy_n(run.gradients.begin() + std::ptrdiff_t(first), w.values.size(),
                gradient.values.begin());
    first += w.values.size();
    expect_ok(
        verify::verify_gradient<T>(w, gradient, q_grad, s, {DataType::Float, DataType::Float, 32}));
  }
}

TEST(HostDense, IsRightWithEitherKernelInEveryBlockTypeAndGroup) {
  for (const bool own : {true, false}) {
    const HostOptions options{.dense = DenseChoice::Always, .own_dense_kernel = own};
    for (const std::int64_t z : {1, 7, 64, 130})
      for (const BlockShape block : {BlockShape{1, 1}, {2, 5}, {10, 10}}) {
        expect_right<float>({.size = {1, 70, 90, z}, .block = block, .options = options});
        expect_right<Half>({.size = {2, 30, 40, z}, .block = block, .options = options});
      }
    expect_right<float>({.size = {1, 1, 1, 1}, .options = options});
    expect_right<float>({.size = {1, 600, 40, 9}, .options = options});
  }
}

TEST(HostDense, IsRightWhereAllWeightsAreStored) {
  for (const bool own : {true, false})
    for (const Dims size :
         {Dims{1, 70, 90, 7}, {1, 10, 64, 100}, {1, 300, 1, 20}, {2, 16, 33, 1}}) {
      const DenseCase c{.size = size,
                        .options = {.dense = DenseChoice::Always, .own_dense_kernel = own},
                        .density = 1};
      expect_right<float>(c);
      expect_right<Half>(c);
      expect_right<BFloat16>(c);
    }
}

// Sets values that cancel in many rows and columns once they are rounded, and sums them up.
template <class T>
void expect_rounded(double density, bool own_kernel) {
  DenseRun<T> run({.size = {1, 30, 40, 3},
                   .options = {.dense = DenseChoice::Always, .own_dense_kernel = own_kernel},
                   .density = density});
  std::ranges::fill(run.s.elements(), T(1.0f));
  std::ranges::fill(run.q_grad.elements(), T(1.0f));
  const sparse::Csr<float>& w = run.weights[0];
  std::vector<float> values(w.values.size());
  const auto set = [&](float positive) {
    for (std::int64_t x = 0; x < w.rows; ++x)
      for (auto i = w.row_begin[std::size_t(x)]; i < w.row_begin[std::size_t(x) + 1]; ++i)
        values[std::size_t(i)] = (x + w.col[std::size_t(i)]) % 2 == 0 ? positive : -1.0f;
    run.layer.set_values(values);
    run.run();
  };
  set(1.0f);
  const Matrix<T> q = run.q, s_grad = run.s_grad;
  set(1.0f + 0x1p-13f);
  EXPECT_EQ(run.q, q) << density << own_kernel;
  EXPECT_EQ(run.s_grad, s_grad) << density << own_kernel;
}

TEST(HostDense, RoundsWeightsToTheirType) {
  for (const double density : {0.3, 1.0})
    for (const bool own : {true, false}) {
      expect_rounded<Half>(density, own);
      expect_rounded<BFloat16>(density, own);
    }
}

template <class T>
void expect_adds(double density, bool own_kernel) {
  DenseRun<T> run({.size = {1, 20, 30, 17},
                   .options = {.dense = DenseChoice::Always, .own_dense_kernel = own_kernel},
                   .density = density});
  std::vector<float> sums = run.gradients;
  run.layer.run(Pass::GradW,
                {.in = std::as_const(run.q_grad).view(),
                 .in_s = std::as_const(run.s).view(),
                 .gradients = sums},
                {.accumulate = Accumulate::Yes});
  for (std::size_t i = 0; i < sums.size(); ++i) ASSERT_EQ(sums[i], 2 * run.gradients[i]);
}

TEST(HostDense, AddsGradientsToThoseGiven) {
  for (const double density : {0.3, 1.0})
    for (const bool own : {true, false}) {
      expect_adds<float>(density, own);
      expect_adds<Half>(density, own);
    }
}

struct DenseResults {
  Matrix<float> q, s_grad;
  std::vector<float> gradients;

  friend bool operator==(const DenseResults&, const DenseResults&) = default;
};

// One executor at a time: oneTBB takes the smallest limit of all that live.
DenseResults results_of(const DenseCase& c) {
  DenseRun<float> run(c);
  return {run.q, run.s_grad, run.gradients};
}

TEST(HostDense, GivesTheSameBitsForAnyNumberOfThreads) {
  for (const bool own : {true, false}) {
    DenseCase c{.size = {1, 600, 100, 70}};
    c.options.own_dense_kernel = own;
    c.threads = 1;
    const DenseResults alone = results_of(c);
    c.threads = 4;
    EXPECT_TRUE(results_of(c) == alone) << (own ? "own kernel" : "library");
  }
}

TEST(HostDense, TakesNewValuesAndViewsWithAnyStride) {
  DenseRun<float> run({.size = {1, 30, 40, 20}});
  const Matrix<float> ones = run.q;
  std::vector<float> values = run.weights[0].values;
  for (float& v : values) v *= 2;
  run.layer.set_values(values);
  Matrix<float> s_turned(20, 40), q_turned(20, 30);
  for (std::int64_t y = 0; y < 40; ++y)
    for (std::int64_t z = 0; z < 20; ++z) s_turned(z, y) = run.s(y, z);
  run.layer.forward<float>(std::as_const(s_turned).view().transposed(),
                           q_turned.view().transposed());
  for (std::int64_t x = 0; x < 30; ++x)
    for (std::int64_t z = 0; z < 20; ++z) ASSERT_EQ(q_turned(z, x), 2 * ones(x, z));
}

TEST(HostDense, PadsLayersWhoseSidesAreNoMultipleOfTheBlock) {
  for (const bool own : {true, false}) {
    const auto executor = make_executor(2);
    HostLayer layer(
        {.size = {1, 33, 21, 6}, .block = {4, 4}, .density = 0.5, .data_type = DataType::Float},
        host::read_host_cpu(), *executor, {.dense = DenseChoice::Always, .own_dense_kernel = own});
    const auto weights = sparse::random_pattern(36, 24, {4, 4}, 0.5, /*seed=*/4);
    layer.set_weights(weights);
    const auto s = random_matrix<float>(21, 6, 5);
    Matrix<float> q(33, 6);
    layer.forward<float>(s.view(), q.view());
    const Matrix<float> dense = sparse::to_dense(weights);
    for (std::int64_t x = 0; x < 33; ++x)
      for (std::int64_t z = 0; z < 6; ++z) {
        double sum = 0;
        for (std::int64_t y = 0; y < 21; ++y) sum += double(dense(x, y)) * double(s(y, z));
        ASSERT_NEAR(q(x, z), sum, 1e-4);
      }
  }
}

// Rates that make one way free and the other slow.
HostRates rates_with(double sparse_flops, double dense_flops) {
  HostRates rates = default_host_rates();
  for (KernelRate& k : rates.kernels) k.flops = sparse_flops;
  for (DenseRate& d : rates.dense) d.flops = dense_flops;
  return rates;
}

TEST(HostDense, HasNoBucketsAndSaysHowToHaveThem) {
  DenseRun<float> run({.options = {.dense = DenseChoice::Always}});
  EXPECT_EQ(test::refusal([&] { run.layer.buckets(); }),
            "buckets: the forward pass is dense, so there are no buckets; use weights() and "
            "set_values(), or DenseChoice::Never");
}

TEST(HostDense, IsChosenPassByPassByTheForecast) {
  const auto dense_with = [](DenseChoice choice, const HostRates& rates) {
    const DenseRun<float> run({.options = {.dense = choice, .rates = rates}});
    return std::vector<bool>{run.layer.is_dense(Pass::Fwd), run.layer.is_dense(Pass::GradA),
                             run.layer.is_dense(Pass::GradW)};
  };
  const HostRates fast_dense = rates_with(1e6, 1e12), fast_sparse = rates_with(1e12, 1e6);
  const std::vector<bool> all(3, true), none(3, false);
  EXPECT_EQ(dense_with(DenseChoice::Auto, fast_dense), all);
  EXPECT_EQ(dense_with(DenseChoice::Auto, fast_sparse), none);
  EXPECT_EQ(dense_with(DenseChoice::Always, fast_sparse), all);
  EXPECT_EQ(dense_with(DenseChoice::Never, fast_dense), none);
  HostRates mixed = fast_sparse;
  for (DenseRate& d : mixed.dense)
    if (d.pass == Pass::GradW) d.flops = 1e15;
  EXPECT_EQ(dense_with(DenseChoice::Auto, mixed), (std::vector<bool>{false, false, true}));
}

}  // namespace
}  // namespace tessera::host
