// Trains formats on the machine: weights come from every kind of view, gradients are row-sparse.

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "tessera/arrays/mapped/mapped_array.hpp"
#include "tessera/arrays/optim/row_gradient.hpp"
#include "tessera/arrays/row_sparse/cast_storage.hpp"
#include "tessera/arrays/tensor/slices.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/sparse/drawing.hpp"

namespace tessera::arrays {
namespace {

constexpr std::int64_t kX = 24, kY = 20, kZ = 8;

// Makes a float layer with all passes.
struct Layer {
  Problem problem;
  device::Machine machine = device::machine_preset("gc200");
  std::unique_ptr<Executor> executor = make_executor(2);
  runtime::FullyConnected layer;

  explicit Layer(BlockShape block = {})
      : problem{.size = {1, kX, kY, kZ},
                .block = block,
                .density = 1,
                .data_type = DataType::Float,
                .grad_a = true,
                .grad_w = true},
        layer(problem, planner::plan_or_throw(problem, machine, planner::sparse_options()), machine,
              device::ExchangeMode::Share, *executor) {}
};

Matrix<float> product(const Matrix<float>& r, const Matrix<float>& s) {
  Matrix<float> q(r.rows(), s.cols());
  for (std::int64_t x = 0; x < r.rows(); ++x)
    for (std::int64_t z = 0; z < s.cols(); ++z)
      for (std::int64_t y = 0; y < r.cols(); ++y) q(x, z) += r(x, y) * s(y, z);
  return q;
}

// Draws small whole numbers, so that sums are exact in any order.
Matrix<float> whole_numbers(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  Random random(seed);
  Matrix<float> m(rows, cols);
  for (float& v : m.elements()) v = float(random.below(7) - 3);
  return m;
}

void expect_forward(const sparse::Csr<float>& weights, const Matrix<float>& truth) {
  Layer machine;
  ASSERT_FALSE(machine.layer.set_weights(weights));
  const Matrix<float> s = whole_numbers(kY, kZ, /*seed=*/2);
  Matrix<float> q(kX, kZ);
  machine.layer.forward<float>(s.view(), q.view());
  EXPECT_EQ(q, product(truth, s));
}

TEST(LayerWeights, MayBeARankTwoViewOfAnyFormat) {
  // The middle slice of a cube is the weights, and a larger matrix holds them as a window.
  Random random(/*seed=*/3);
  arrays::CooTensor<float> cube({kX, 3, kY});
  arrays::SlicedCsr<float> large(kX + 5, kY + 7);
  Matrix<float> truth(kX, kY);
  for (std::int64_t x = 0; x < kX; ++x)
    for (std::int64_t y = 0; y < kY; ++y) {
      if (random.below(4) != 0) continue;
      truth(x, y) = float(1 + random.below(5));
      cube.put({x, 1, y}, truth(x, y));
      cube.put({x, 0, y}, 9);
      large.put(x + 2, y + 3, truth(x, y));
    }
  large.put(0, 0, 9), large.put(kX + 4, kY + 6, 9);
  const arrays::Array<float> rows = arrays::cast_storage<float>(
      arrays::to_array<float>(truth.view()), arrays::Storage::RowSparse);
  const auto window = large.view(arrays::Interval{2, kX + 2}, arrays::Interval{3, kY + 3});
  const auto turned =
      arrays::SlicedCsc<float>(arrays::to_sliced(sparse::transpose(arrays::to_csr(window))));
  const auto mapped = arrays::to_mapped(cube, arrays::Mapping({kX, 3, kY}, {2, 0, 1}, {1}),
                                        arrays::MappedKind::Csr);
  expect_forward(to_csr(cube.select({arrays::All{}, arrays::Point{1}})), truth);
  expect_forward(to_csr(window), truth);
  expect_forward(to_csr(turned), truth);
  expect_forward(to_csr(std::get<arrays::RowSparse<float>>(rows)), truth);
  expect_forward(to_csr(mapped.select({arrays::All{}, arrays::Point{1}})), truth);
}

TEST(RowGradients, HoldTheTouchedRowsAtThePatternAndNoOthers) {
  Layer machine;
  const auto weights = sparse::random_pattern(kX, kY, {1, 1}, 0.4, /*seed=*/5);
  ASSERT_FALSE(machine.layer.set_weights(weights));
  const Matrix<float> s = whole_numbers(kY, kZ, /*seed=*/6);
  Matrix<float> q_grad(kX, kZ);
  for (const std::int64_t row : {1, 7, 23}) q_grad(row, row % kZ) = float(row);
  const auto [gradient, ledger] = grad_w_rows<float>(machine.layer, q_grad.view(), s.view());
  EXPECT_EQ(gradient.rows, (std::vector<std::int64_t>{1, 7, 23}));
  EXPECT_GT(ledger.total().value, 0);
  const Matrix<float> dense = arrays::to_matrix(to_dense(gradient));
  const Matrix<float> pattern = sparse::to_dense(weights);
  for (std::int64_t x = 0; x < kX; ++x)
    for (std::int64_t y = 0; y < kY; ++y) {
      float sum = 0;
      for (std::int64_t z = 0; z < kZ; ++z) sum += q_grad(x, z) * s(y, z);
      EXPECT_EQ(dense(x, y), pattern(x, y) == 0 ? 0 : sum) << x << " " << y;
    }
}

TEST(RowGradients, AreOfElements) {
  Layer machine({4, 4});
  ASSERT_FALSE(machine.layer.set_weights(sparse::random_pattern(kX, kY, {4, 4}, 0.4, /*seed=*/5)));
  const Matrix<float> s(kY, kZ), q_grad(kX, kZ);
  EXPECT_TRUE(test::raises(ErrorCode::InvalidArgument, {"blocks of 4 x 4"},
                           [&] { grad_w_rows<float>(machine.layer, q_grad.view(), s.view()); }));
}

}  // namespace
}  // namespace tessera::arrays
