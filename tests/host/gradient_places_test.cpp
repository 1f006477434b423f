#include "tessera/host/gradient_places.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/support/message_of.hpp"
#include "tessera/tests/support/trials.hpp"

namespace tessera::host {
namespace {

constexpr std::int64_t kX = 240, kY = 480;

struct PlacesCase {
  sparse::Csr<float> pattern;
  Matrix<float> q_grad, s;

  PlacesCase(std::int64_t z, BlockShape block, double density = 0.1)
      : pattern(sparse::random_pattern(kX, kY, block, density, 3)),
        q_grad(random_matrix<float>(kX, z, 5)),
        s(random_matrix<float>(kY, z, 6)) {}
  GradientPlaces places() const { return {pattern.block, pattern.row_begin, pattern.col}; }
  GradientOperands operands() const { return {q_grad.view(), s.view()}; }
  std::vector<float> run(const GradientOperands& batch, int threads = 2) const {
    std::vector<float> gradients(pattern.values.size(), 7.0f);
    gradient_at_places(batch, places(), *make_executor(threads), gradients);
    return gradients;
  }
  std::vector<float> of_layer(const HostCpu& cpu = read_host_cpu()) const {
    const auto executor = make_executor(1);
    HostLayer layer({.size = {1, kX, kY, std::max<std::int64_t>(s.cols(), 1)},
                     .block = pattern.block,
                     .density = 0.1,
                     .data_type = DataType::Float,
                     .grad_w = true},
                    cpu, *executor);
    layer.set_weights(pattern);
    std::vector<float> gradients(pattern.values.size());
    layer.grad_w<float>(q_grad.view(), s.view(), gradients);
    return gradients;
  }
};

TEST(GradientAtPlaces, HasTheBitsOfALayerWithThatPattern) {
  test::Cases cases;
  for (const std::int64_t z : {0, 1, 7, 64, 256, 300})
    for (const BlockShape block : {BlockShape{1, 1}, {4, 4}, {16, 16}, {3, 5}})
      for (const double density : {0.0, 0.02, 0.5}) {
        if (!cases.next()) continue;
        SCOPED_TRACE(testing::Message() << z << " columns, block " << block.rows << " x "
                                        << block.cols << ", density " << density);
        const PlacesCase c(z, block, density);
        EXPECT_EQ(c.run(c.operands()), c.of_layer());
      }
}

// The smaller the caches, the more slices S is cut in; rows of the matrix have 10 to 380 elements,
// a slice of the smallest cache 1 to 40 of them.
TEST(GradientAtPlaces, HasTheSameBitsForAnyCaches) {
  for (const std::int64_t z : {20, 64, 256})
    for (const double density : {0.02, 0.1, 0.8}) {
      SCOPED_TRACE(testing::Message() << z << " columns, density " << density);
      if (tessera::test::kIsSanitized && z != 64) continue;
      const PlacesCase c(z, {1, 1}, density);
      HostCpu cpu = read_host_cpu();
      const std::vector<float> expected = c.of_layer(cpu);
      for (const std::int64_t rows : {1, 50, 200, 400}) {
        cpu.l2 = Bytes(4 * rows * z);
        EXPECT_EQ(c.of_layer(cpu), expected) << rows;
      }
    }
}

TEST(GradientAtPlaces, HasTheSameBitsForAnyThreadsAndStrides) {
  for (const BlockShape block : {BlockShape{1, 1}, {4, 4}}) {
    const PlacesCase c(70, block);
    const std::vector<float> expected = c.run(c.operands(), 1);
    for (const int threads : {2, 3, 7}) EXPECT_EQ(c.run(c.operands(), threads), expected);
    Matrix<float> q_turned(70, kX), s_turned(70, kY);
    for (std::int64_t z = 0; z < 70; ++z) {
      for (std::int64_t x = 0; x < kX; ++x) q_turned(z, x) = c.q_grad(x, z);
      for (std::int64_t y = 0; y < kY; ++y) s_turned(z, y) = c.s(y, z);
    }
    EXPECT_EQ(c.run({std::as_const(q_turned).view().transposed(),
                     std::as_const(s_turned).view().transposed()}),
              expected);
  }
}

// One thread takes 1,024 rows together, and several take 64.
TEST(GradientAtPlaces, HasTheSameBitsForManyRows) {
  constexpr std::int64_t kRows = 1100, kColumns = 300;
  const auto pattern = sparse::random_pattern(kRows, 64, {}, 0.1, 3);
  const auto q_grad = random_matrix<float>(kRows, kColumns, 5),
             s = random_matrix<float>(64, kColumns, 6);
  const GradientPlaces places{pattern.block, pattern.row_begin, pattern.col};
  std::vector<float> one(pattern.values.size()), two(one.size());
  gradient_at_places({q_grad.view(), s.view()}, places, *make_executor(1), one);
  gradient_at_places({q_grad.view(), s.view()}, places, *make_executor(2), two);
  EXPECT_EQ(one, two);
}

TEST(GradientAtPlaces, CountsMissingRowsOfTheLastBlockAsZero) {
  PlacesCase c(30, {4, 4}, 1.0);
  const GradientOperands whole = c.operands();
  const GradientOperands cut{whole.q_grad.sub({0, kX - 3}, {0, 30}),
                             whole.s.sub({0, kY - 1}, {0, 30})};
  const std::vector<float> got = c.run(cut);
  for (std::int64_t z = 0; z < 30; ++z) {
    for (std::int64_t x = kX - 3; x < kX; ++x) c.q_grad(x, z) = 0;
    c.s(kY - 1, z) = 0;
  }
  EXPECT_EQ(got, c.run(c.operands()));
}

template <class Damage>
ErrorCode refusal(const Damage& damage) {
  PlacesCase c(5, {4, 4});
  GradientOperands batch = c.operands();
  std::vector<float> gradients(c.pattern.values.size(), 7.0f);
  damage(c.pattern, batch, gradients);
  const std::vector<float> before = gradients;
  try {
    gradient_at_places(batch, c.places(), *make_executor(1), gradients);
  } catch (const Error& e) {
    EXPECT_EQ(gradients, before);
    return e.code();
  }
  ADD_FAILURE() << "was taken";
  return ErrorCode::CheckFailed;
}

TEST(PlacesGradient, GivesSomeRowsAtATimeWhatAllRowsGet) {
  for (const BlockShape block : {BlockShape{1, 1}, BlockShape{4, 3}}) {
    const PlacesCase first(40, block), second(7, block);
    const auto executor = make_executor(1);
    const std::vector<GradientOperands> batches = {first.operands(), second.operands()};
    std::vector<float> expected = first.run(first.operands());
    const std::vector<float> more = first.run(second.operands());
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += more[i];
    const PlacesGradient gradient(block, first.pattern.blocks(), batches, *executor);
    const std::int64_t rows = first.pattern.block_rows(), area = block.area();
    for (const std::int64_t step : {std::int64_t{1}, std::int64_t{7}, rows})
      for (std::int64_t row = 0; row < rows; row += step) {
        const std::int64_t end = std::min(row + step, rows);
        const auto& begin = first.pattern.row_begin;
        std::vector<std::int64_t> row_begin;
        for (std::int64_t r = row; r <= end; ++r)
          row_begin.push_back(begin[std::size_t(r)] - begin[std::size_t(row)]);
        const auto places = std::size_t(row_begin.back()),
                   at = std::size_t(begin[std::size_t(row)]);
        std::vector<float> gradients(places * std::size_t(area), 7.0f);
        gradient.compute(row, row_begin, std::span(first.pattern.col).subspan(at, places),
                         gradients);
        const auto from = expected.begin() + std::int64_t(at) * area;
        EXPECT_EQ(gradients, std::vector<float>(from, from + std::ssize(gradients)));
      }
  }
}

TEST(PlacesGradient, RefusesRowsAndOperandsOfAnotherMatrix) {
  const PlacesCase c(8, {1, 1});
  const auto executor = make_executor(1);
  const std::vector<GradientOperands> batches = {c.operands()};
  const PlacesGradient gradient({}, 4, batches, *executor);
  std::vector<float> one(1);
  const std::vector<std::int64_t> row_begin = {0, 1};
  const std::vector<std::int32_t> inside = {3}, outside = {std::int32_t(kY)};
  EXPECT_NO_THROW(gradient.compute(kX - 1, row_begin, inside, one));
  EXPECT_THROW(gradient.compute(kX, row_begin, inside, one), Error);
  EXPECT_THROW(gradient.compute(-1, row_begin, inside, one), Error);
  EXPECT_THROW(gradient.compute(0, row_begin, outside, one), Error);
  EXPECT_THROW(gradient.compute(0, row_begin, inside, {}), Error);
  const std::vector<std::int64_t> two_rows = {0, 2, 4};
  const std::vector<std::int32_t> falls = {0, 1, 3, 2};
  std::vector<float> four(4);
  EXPECT_EQ(test::message_of([&] { gradient.compute(4, two_rows, falls, four); }),
            "gradient at places: place 3 of block row 5 is in block column 2; columns must ascend "
            "and be in 0.." +
                std::to_string(kY - 1));
  const PlacesCase other(8, {1, 1});
  const std::vector<GradientOperands> differ = {
      c.operands(), {other.q_grad.view().sub({0, kX - 1}, {0, 8}), other.s.view()}};
  EXPECT_THROW(PlacesGradient({}, 4, differ, *executor), Error);
}

TEST(GradientAtPlaces, RefusesListsThatAreNoPattern) {
  using Pattern = sparse::Csr<float>;
  using List = std::vector<float>;
  const auto argument = ErrorCode::InvalidArgument, input = ErrorCode::BadInput;
  EXPECT_EQ(refusal([](Pattern&, GradientOperands& b, List&) { b.s.cols = 4; }), argument);
  EXPECT_EQ(refusal([](Pattern&, GradientOperands& b, List&) { b.q_grad.rows = kX - 4; }),
            argument);
  EXPECT_EQ(refusal([](Pattern& p, GradientOperands&, List&) { p.row_begin.pop_back(); }),
            argument);
  EXPECT_EQ(refusal([](Pattern& p, GradientOperands&, List&) { p.row_begin[3] = 1 << 30; }),
            argument);
  EXPECT_EQ(refusal([](Pattern&, GradientOperands&, List& g) { g.pop_back(); }), argument);
  EXPECT_EQ(refusal([](Pattern& p, GradientOperands&, List&) { p.block = {0, 4}; }), argument);
  EXPECT_EQ(refusal([](Pattern& p, GradientOperands&, List&) { p.col[5] = -1; }), input);
  EXPECT_EQ(refusal([](Pattern& p, GradientOperands&, List&) { p.col[5] = kY / 4; }), input);
  EXPECT_EQ(refusal([](Pattern& p, GradientOperands&, List&) { std::swap(p.col[0], p.col[1]); }),
            input);
}

}  // namespace
}  // namespace tessera::host
