#include <gtest/gtest.h>

#include "tessera/base/error.hpp"
#include "tessera/tests/runtime/layer_case.hpp"

namespace tessera::runtime {
namespace {

LayerCase make_case(std::int64_t rows, std::int64_t cols, double density, std::uint64_t seed = 1) {
  LayerCase c;
  c.weights = random_weights(rows, cols, {1, 1}, density, seed);
  c.seed = seed;
  return c;
}

TEST(Layer, IsRightForEverySplitOfEveryAxis) {
  for (const std::int64_t x : {1, 2, 3})
    for (const std::int64_t y : {1, 2, 4})
      for (const std::int64_t z : {1, 2})
        for (const bool travelling : {false, true}) {
          LayerCase c = make_case(12, 16, 0.3);
          c.batch = 8;
          c.partition = {1, x, y, z};
          c.travelling_buckets = travelling;
          expect_right(c);
        }
}

TEST(Layer, IsRightAtTheEdgeSizes) {
  for (const auto& [rows, cols] : {std::pair{1, 1}, {1, 37}, {37, 1}, {13, 17}})
    for (const std::int64_t batch : {1, 2, 3, 5, 37})
      for (const DataType type : {DataType::Float, DataType::Half}) {
        LayerCase c = make_case(rows, cols, 0.5);
        c.batch = batch;
        c.type = type;
        c.partition = {1, std::min(rows, 3) == 3 ? 3 : 1, std::min(cols, 2), 1};
        expect_right(c);
      }
}

TEST(Layer, IsRightWithoutAnyNonZero) {
  LayerCase c = make_case(8, 8, 0.0);
  expect_right(c);
  c.room = 0.0;  // buckets without a single value
  c.partition = {1, 2, 1, 2};
  expect_right(c);
  c.partition = {1, 1, 1, 1};
  expect_right(c);
}

TEST(Layer, IsRightWithOneFullRowAndWithOneFullColumn) {
  Matrix<float> row(9, 20), column(20, 9);
  for (std::int64_t i = 0; i < 20; ++i) row(4, i) = column(i, 7) = float(i) - 7.5f;
  for (const bool travelling : {false, true})
    for (const Matrix<float>& dense : {row, column}) {
      LayerCase c;
      c.weights = sparse::from_dense(dense.view(), {1, 1});
      c.partition = {1, 3, 3, 2};
      c.travelling_buckets = travelling;
      expect_right(c);
    }
}

TEST(Layer, IsRightForBlocksOfAnyShape) {
  for (const BlockShape block : {BlockShape{4, 4}, {8, 8}, {16, 16}, {2, 3}, {1, 4}, {5, 1}})
    for (const DataType type : {DataType::Float, DataType::Half})
      for (const bool travelling : {false, true}) {
        LayerCase c;
        c.weights = random_weights(6 * block.rows, 5 * block.cols, block, 0.4, 2);
        c.batch = 6;
        c.type = type;
        c.partition = {1, 3, 5, 2};
        c.travelling_buckets = travelling;
        expect_right(c);
      }
}

TEST(Layer, IsRightWithSeparateBucketsForTheInputGradient) {
  for (const DataType type : {DataType::Float, DataType::Half}) {
    LayerCase c = make_case(20, 30, 0.3);
    c.type = type;
    c.batch = 8;
    c.partition = {1, 2, 3, 2};
    c.separate_grad_a = true;
    expect_right(c);
    c.force_spills = true;
    expect_right(c);
  }
}

TEST(Layer, IsRightWhenEveryPieceIsForcedAway) {
  for (const Dims partition :
       {Dims{1, 1, 3, 1}, Dims{1, 3, 1, 1}, Dims{1, 2, 2, 2}, Dims{1, 3, 4, 2}})
    for (const bool travelling : {false, true}) {
      LayerCase c = make_case(12, 16, 0.4);
      c.batch = 8;
      c.partition = partition;
      c.travelling_buckets = travelling;
      c.force_spills = true;
      expect_right(c);
      const auto results = run_case(c);
      ASSERT_TRUE(results);
      // With z cut the next bucket belongs to the same cell.
      const bool leaves = partition.z == 1;
      EXPECT_EQ(results->spill.moved_blocks, leaves ? c.weights.blocks() : 0);
      EXPECT_NE(results->travel.stays_home(), leaves);
    }
}

TEST(Layer, IsRightWhenSkewMakesPiecesSpill) {
  // All non-zeros in one corner; buckets with room for a quarter of the fullest cell.
  int travelled = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed)
    for (const bool travelling : {false, true}) {
      LayerCase c = make_case(24, 24, 0.02, seed);
      Matrix<float> dense = sparse::to_dense(c.weights);
      for (std::int64_t i = 0; i < 36; ++i) dense(i / 6, i % 6) = float(i + 1);
      c.weights = sparse::from_dense(std::as_const(dense).view(), {1, 1});
      c.batch = 6;
      c.partition = {1, 3, 4, seed % 2 == 0 ? 3 : 1};
      c.room = 0.35;
      c.travelling_buckets = travelling;
      const auto results = run_case(c);
      if (!results) continue;
      travelled += !results->travel.stays_home();
      for (const verify::Verdict& verdict : results->verdicts)
        EXPECT_TRUE(verdict.ok()) << c.name() << ": " << to_string(verdict);
    }
  EXPECT_GT(travelled, 6) << "the case is there to spill";
}

// One operand three ways: as it is, inside a wider matrix, and lying on its side.
struct Layouts {
  Matrix<float> plain, wide, turned;

  Layouts(std::int64_t rows, std::int64_t cols)
      : plain(rows, cols), wide(rows, cols + 5), turned(cols, rows) {}
  static Layouts random(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
    Layouts all(rows, cols);
    all.plain = random_matrix<float>(rows, cols, seed);
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < cols; ++c)
        all.wide_view()(r, c) = all.turned_view()(r, c) = all.plain(r, c);
    return all;
  }
  MatrixView<float> wide_view() {
    return wide.view().sub({0, plain.rows()}, {3, 3 + plain.cols()});
  }
  MatrixView<float> turned_view() { return turned.view().transposed(); }

  // As results: all three hold the same, and nothing was written around the view.
  void expect_same_results() {
    for (std::int64_t r = 0; r < plain.rows(); ++r) {
      for (std::int64_t c = 0; c < plain.cols(); ++c) {
        EXPECT_EQ(wide_view()(r, c), plain(r, c));
        EXPECT_EQ(turned_view()(r, c), plain(r, c));
      }
      for (const std::int64_t c : {0, 1, 2, 3, 4})
        EXPECT_EQ(wide(r, c < 3 ? c : c + plain.cols()), 0.0f);
    }
    EXPECT_NE(plain, Matrix<float>(plain.rows(), plain.cols()));
  }
};

TEST(Layer, TakesStridedAndTransposedOperandsInEveryPass) {
  for (const bool travelling : {false, true}) {
    LayerCase c = make_case(10, 14, 0.4);
    c.travelling_buckets = travelling;
    const auto executor = make_executor(1);
    device::Machine machine = device::machine_preset("gc200");
    machine.tiles = 4;
    FullyConnected layer(c.problem(), c.plan(), machine, device::ExchangeMode::Share, *executor);
    ASSERT_FALSE(layer.set_weights(c.weights));
    auto s = Layouts::random(14, 4, 5), q_grad = Layouts::random(10, 4, 6);
    Layouts q(10, 4), s_grad(14, 4);
    sparse::Csr<float> plain = c.weights, wide = plain, turned = plain;

    layer.forward<float>(s.plain.view(), q.plain.view());
    layer.forward<float>(s.wide_view(), q.wide_view());
    layer.forward<float>(s.turned_view(), q.turned_view());
    layer.grad_a<float>(q_grad.plain.view(), s_grad.plain.view());
    layer.grad_a<float>(q_grad.wide_view(), s_grad.wide_view());
    layer.grad_a<float>(q_grad.turned_view(), s_grad.turned_view());
    layer.grad_w<float>(q_grad.plain.view(), s.plain.view(), plain.values);
    layer.grad_w<float>(q_grad.wide_view(), s.turned_view(), wide.values);
    layer.grad_w<float>(q_grad.turned_view(), s.wide_view(), turned.values);

    q.expect_same_results();
    s_grad.expect_same_results();
    EXPECT_EQ(wide, plain);
    EXPECT_EQ(turned, plain);
    EXPECT_TRUE(verify::verify_gradient<float>(c.weights, plain, std::as_const(q_grad.plain).view(),
                                               std::as_const(s.plain).view(), {})
                    .ok());
  }
}

TEST(Layer, ANewPatternReplacesTheOldAndAMisfitLeavesItInPlace) {
  LayerCase c = make_case(16, 16, 0.2);
  c.room = 1.5;
  const auto executor = make_executor(1);
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = 4;
  FullyConnected layer(c.problem(), c.plan(), machine, device::ExchangeMode::Share, *executor);
  const auto s = random_matrix<float>(16, 4, 5);
  Matrix<float> first(16, 4), second(16, 4), third(16, 4);
  ASSERT_FALSE(layer.set_weights(c.weights));
  layer.forward<float>(s.view(), first.view());
  const auto other = random_weights(16, 16, {1, 1}, 0.2, 9);
  ASSERT_FALSE(layer.set_weights(other));
  layer.forward<float>(s.view(), second.view());
  EXPECT_NE(first, second);
  EXPECT_TRUE(verify::verify_product<float>(other, s.view(), std::as_const(second).view(),
                                            {DataType::Float, DataType::Float, 2})
                  .ok());

  const auto misfit = layer.set_weights(random_weights(16, 16, {1, 1}, 0.9, 10));

  ASSERT_TRUE(misfit);
  EXPECT_GT(misfit->capacity_factor, 1.0);
  layer.forward<float>(s.view(), third.view());
  EXPECT_EQ(second, third);
}

TEST(Layer, RefusesWhatItWasNotMadeFor) {
  LayerCase c = make_case(8, 8, 0.3);
  Problem problem = c.problem();
  problem.grad_a = problem.grad_w = false;
  const auto executor = make_executor(1);
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = 4;
  FullyConnected layer(problem, c.plan(), machine, device::ExchangeMode::Share, *executor);
  Matrix<float> s(8, 4), q(8, 4), narrow(8, 3);
  Matrix<Half> s_half(8, 4), q_half(8, 4);
  const auto refused = [](auto&& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.code() == ErrorCode::InvalidArgument;
    }
    return false;
  };
  const auto s_view = std::as_const(s).view();
  EXPECT_TRUE(refused([&] { layer.forward<float>(s_view, q.view()); })) << "no weights yet";
  ASSERT_FALSE(layer.set_weights(c.weights));
  EXPECT_TRUE(refused([&] { layer.forward<float>(s_view, narrow.view()); })) << "wrong shape";
  EXPECT_TRUE(refused([&] { layer.forward<Half>(std::as_const(s_half).view(), q_half.view()); }))
      << "wrong type";
  EXPECT_TRUE(refused([&] { layer.grad_a<float>(s_view, q.view()); })) << "pass not planned";
  EXPECT_TRUE(refused([&] { layer.set_weights(random_weights(8, 6, {1, 1}, 0.3, 1)); }));
  EXPECT_TRUE(refused([&] { layer.set_weights(random_weights(8, 8, {2, 2}, 0.3, 1)); }));
  EXPECT_FALSE(refused([&] { layer.forward<float>(s_view, q.view()); }));
}

}  // namespace
}  // namespace tessera::runtime
