// Layers whose forward pass reads packed rows.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/random.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/host/prepared.hpp"
#include "tessera/sparse/change.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/support/message_of.hpp"
#include "tessera/verify/self_check.hpp"

namespace tessera::host {
namespace {

// A computer whose caches hold next to nothing, so that small layers are packed as well.
HostCpu tiny_caches() {
  HostCpu cpu = read_host_cpu();
  cpu.vector = Bytes(64);  // with narrower ones no rows are packed
  cpu.l2 = Bytes(1 << 10);
  cpu.cores = 1;
  return cpu;
}

struct Size {
  std::int64_t x, y, z;
  double density;
};

template <class T>
Problem problem_of(const Size& size) {
  return {
      .size = {1, size.x, size.y, size.z}, .density = size.density, .data_type = data_type_of<T>()};
}

sparse::Csr<float> random_weights(const Size& size, std::uint64_t seed) {
  sparse::Csr<float> matrix =
      sparse::random_pattern(size.x, size.y, BlockShape{1, 1}, size.density, seed);
  Random random(seed);
  for (float& value : matrix.values) value = float(2 * random.unit() - 1);
  return matrix;
}

template <class T>
struct PackedLayer {
  std::unique_ptr<Executor> executor;
  HostLayer layer;

  explicit PackedLayer(const Size& size, int threads = 2, const HostOptions& options = {})
      : executor(make_executor(ExecutorKind::Threads, threads)),
        layer(problem_of<T>(size), tiny_caches(), *executor, options) {}
  Matrix<T> forward(const Matrix<T>& s, const PassOptions& after = {}) {
    Matrix<T> q(layer.weights().rows, s.cols());
    layer.forward<T>(s.view(), q.view(), after);
    return q;
  }
};

// Compares with double precision: the sums, the bias and the ReLU.
template <class T>
void expect_right(const sparse::Csr<float>& w, const Matrix<T>& s, const Matrix<T>& q,
                  std::span<const float> bias = {}) {
  const double unit = std::is_same_v<T, Half> ? 0x1p-11 : 0x1p-8;
  for (std::int64_t x = 0; x < w.rows; ++x)
    for (std::int64_t z = 0; z < s.cols(); ++z) {
      double sum = 0, size = 0;
      for (auto i = w.row_begin[std::size_t(x)]; i < w.row_begin[std::size_t(x) + 1]; ++i) {
        const double term =
            double(float(T(w.values[std::size_t(i)]))) * float(s(w.col[std::size_t(i)], z));
        sum += term;
        size += std::abs(term);
      }
      if (!bias.empty()) sum = std::max(sum + bias[std::size_t(x)], 0.0);
      const double bias_size = bias.empty() ? 0 : std::abs(bias[std::size_t(x)]);
      ASSERT_NEAR(double(float(q(x, z))), sum,
                  2 * unit * (std::abs(sum) + bias_size + 1e-3 * size) + 1e-6)
          << "row " << x << ", column " << z;
    }
}

template <class T>
void expect_right_layers() {
  // The last one is so large that threads share its rows.
  for (const Size& size :
       {Size{37, 300, 1, 0.5}, {50, 520, 2, 0.4}, {33, 700, 1, 0.06}, {150, 1000, 4, 0.4}}) {
    SCOPED_TRACE(testing::Message() << size.x << " x " << size.y << ", density " << size.density);
    PackedLayer<T> packed(size), one(size, 1);
    const sparse::Csr<float> w = random_weights(size, 7);
    packed.layer.set_weights(w);
    one.layer.set_weights(w);
    ASSERT_TRUE(packed.layer.is_packed(Pass::Fwd));
    std::vector<float> bias(std::size_t(size.x), 0.25f);
    for (const std::int64_t z : {std::int64_t{1}, size.z, std::int64_t{35}}) {
      const Matrix<T> s = random_matrix<T>(size.y, z, 11);
      const Matrix<T> q = packed.forward(s);
      expect_right(w, s, q);
      EXPECT_EQ(q, one.forward(s)) << "another number of threads gives other bits";
      expect_right(w, s, packed.forward(s, {.bias = bias, .activation = Activation::Relu}), bias);
    }
  }
}

TEST(PackedForward, IsRightForHalfAndBFloat16OfAnyBatch) {
  expect_right_layers<Half>();
  expect_right_layers<BFloat16>();
}

TEST(PackedForward, HoldsARowThatIsFullInAMatrixOfFewValues) {
  const Size size{33, 700, 1, 0.06};
  PackedLayer<Half> packed(size);
  sparse::Csr<float> w = random_weights({32, 700, 1, 0.03}, 7);
  for (std::int32_t col = 0; col < size.y; ++col) w.col.push_back(col);
  w.values.resize(w.col.size(), 0.5f);
  w.row_begin.push_back(std::ssize(w.col));
  w.rows = size.x;
  packed.layer.set_weights(w);
  ASSERT_TRUE(packed.layer.is_packed(Pass::Fwd));
  const Matrix<Half> s = random_matrix<Half>(size.y, 1, 11);
  expect_right(w, s, packed.forward(s));
}

TEST(PackedForward, ReadsAndWritesOperandsWithTheBatchFirst) {
  const Size size{40, 300, 5, 0.3};
  PackedLayer<Half> packed(size);
  packed.layer.set_weights(random_weights(size, 3));
  const Matrix<Half> s = random_matrix<Half>(size.y, 5, 4);
  Matrix<Half> s_batch(5, size.y), q_batch(5, size.x);
  for (std::int64_t y = 0; y < size.y; ++y)
    for (std::int64_t z = 0; z < 5; ++z) s_batch(z, y) = s(y, z);
  packed.layer.forward<Half>(std::as_const(s_batch).view().transposed(),
                             q_batch.view().transposed());
  const Matrix<Half> q = packed.forward(s);
  for (std::int64_t x = 0; x < size.x; ++x)
    for (std::int64_t z = 0; z < 5; ++z) EXPECT_EQ(q_batch(z, x), q(x, z));
}

TEST(PackedForward, FollowsNewValuesAndPatterns) {
  const Size size{30, 400, 2, 0.3};
  PackedLayer<BFloat16> changed(size), fresh(size);
  const sparse::Csr<float> w = random_weights(size, 3), other = random_weights(size, 4);
  const Matrix<BFloat16> s = random_matrix<BFloat16>(size.y, 2, 5);
  changed.layer.set_weights(w);
  changed.layer.set_values(std::span(w.values));
  std::vector<float> halved = w.values;
  for (float& value : halved) value *= 0.5f;
  changed.layer.change_values([](std::span<float> part, std::int64_t) {
    for (float& value : part) value *= 0.5f;
  });
  sparse::Csr<float> truth = w;
  truth.values = halved;
  fresh.layer.set_weights(truth);
  EXPECT_EQ(changed.forward(s), fresh.forward(s));
  const sparse::PatternChange change{{{0, w.col[0]}}, {{29, other.col.back()}}};
  const std::int32_t added = other.col.back();
  const auto last = std::span(w.col).subspan(std::size_t(w.row_begin[29]));
  if (std::ranges::find(last, added) == last.end()) {
    changed.layer.update_weights(change);
    fresh.layer.set_weights(sparse::with_change(truth, change));
    EXPECT_TRUE(changed.layer.is_packed(Pass::Fwd));
    EXPECT_EQ(changed.forward(s), fresh.forward(s));
  }
}

TEST(PackedForward, LeavesOutInfinityWhereNothingIsStored) {
  const Size size{8, 300, 1, 0.5};
  PackedLayer<Half> packed(size);
  sparse::Csr<float> w = random_weights(size, 3);
  const std::int32_t stored = w.col[0];
  Matrix<Half> s = random_matrix<Half>(size.y, 1, 5);
  s(stored, 0) = Half(std::numeric_limits<float>::infinity());
  packed.layer.set_weights(w);
  ASSERT_TRUE(packed.layer.is_packed(Pass::Fwd));
  const Matrix<Half> q = packed.forward(s);
  for (std::int64_t x = 0; x < size.x; ++x) {
    const auto row = std::span(w.col).subspan(
        std::size_t(w.row_begin[std::size_t(x)]),
        std::size_t(w.row_begin[std::size_t(x) + 1] - w.row_begin[std::size_t(x)]));
    const bool meets = std::ranges::find(row, stored) != row.end();
    EXPECT_EQ(std::isfinite(float(q(x, 0))), !meets) << "row " << x;
  }
}

TEST(PackedForward, PassesTheSelfCheckAndSavesMemory) {
  const Size size{64, 600, 1, 0.4};
  const sparse::Csr<float> w = random_weights(size, 3);
  const Matrix<Half> s = random_matrix<Half>(size.y, 1, 5);
  PackedLayer<Half> packed(size);
  packed.layer.set_weights(w);
  Matrix<Half> q(size.x, 1);
  HostTimes times;
  verify::Checksums checksums;
  const layer::PassOptions options{.self_check = &checksums};
  EXPECT_TRUE(packed.layer.forward<Half>(s.view(), q.view(), options, times));
  EXPECT_EQ(checksums.recomputed, 0);
  HostLayer cells(problem_of<Half>(size), read_host_cpu(), *packed.executor);
  cells.set_weights(w);
  ASSERT_FALSE(cells.is_packed(Pass::Fwd)) << "so few weights stay in the caches";
  EXPECT_LT(packed.layer.memory_bytes(), cells.memory_bytes());
}

TEST(PackedForward, IsChosenForFewColumnsOfElementsIn16BitsOnly) {
  const Size size{64, 600, 16, 0.4};
  const auto executor = make_executor(1);
  const auto is_packed = [&](Problem problem) {
    HostLayer layer(problem, tiny_caches(), *executor);
    layer.set_weights(sparse::random_pattern(size.x, size.y, problem.block, size.density, 1));
    return layer.is_packed(Pass::Fwd);
  };
  Problem problem = problem_of<Half>(size);
  problem.size.z = 1;
  EXPECT_TRUE(is_packed(problem));
  Problem other = problem;
  other.size.z = 17;
  EXPECT_FALSE(is_packed(other)) << "more columns";
  other = problem;
  other.data_type = DataType::Float;
  EXPECT_FALSE(is_packed(other)) << "floats";
  other = problem;
  other.block = {4, 4};
  EXPECT_FALSE(is_packed(other)) << "blocks";
  other = problem;
  other.grad_w = true;
  EXPECT_FALSE(is_packed(other)) << "values that are trained";
}

TEST(PackedForward, HasNoBucketsAndSaysSo) {
  const Size size{64, 600, 1, 0.4};
  PackedLayer<Half> packed(size);
  packed.layer.set_weights(random_weights(size, 3));
  EXPECT_EQ(test::refusal([&] { packed.layer.buckets(); }),
            "buckets: the forward pass reads packed rows, so there are no buckets; use weights() "
            "and set_values()");
}

TEST(PackedForward, ServesAPreparedMatrixOfTheSameValues) {
  const Size size{700, 1500, 1, 0.6};
  const sparse::Csr<float> w = random_weights(size, 3);
  std::vector<Half> values;
  for (const float value : w.values) values.push_back(Half(value));
  const auto executor = make_executor(2);
  const Prepared<Half> prepared(
      CompressedRows<Half, std::int32_t, std::int64_t>{
          size.x, size.y, {1, 1}, w.row_begin, w.col, values},
      *executor, {.batch = 1});
  const Matrix<Half> s = random_matrix<Half>(size.y, 3, 5);
  Matrix<Half> q(size.x, 3);
  prepared.spmm(s.view(), q.view(), *executor);
  expect_right(w, s, q);
}

}  // namespace
}  // namespace tessera::host
