// The search for the largest weight gradients outside a layer's pattern, on the modelled machine
// and on this computer, against a sort of all gradients in double precision.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/base/random.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/runtime/dense_grad_w.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/sparse/random.hpp"

namespace tessera {
namespace {

using codelets::BlockScore;
using sparse::BlockAt;
using sparse::Csr;
using testing::HasSubstr;
using testing::ThrowsMessage;

device::Machine machine_of(std::int64_t tiles, std::int64_t memory = 638976) {
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = tiles;
  machine.tile_memory = Bytes(memory);
  return machine;
}

// A layer with a pattern for each group, and operands of small whole numbers: sums are exact, and
// many are equal.
template <class T>
struct Growth {
  Problem problem;
  std::vector<Csr<float>> weights;
  Matrix<T> q_grad, s;

  Growth(Dims size, BlockShape block, double density, std::uint64_t seed)
      : problem{.size = size, .block = block, .density = density, .data_type = data_type_of<T>()},
        q_grad(size.g * size.x, size.z),
        s(size.g * size.y, size.z) {
    for (std::int64_t g = 0; g < size.g; ++g)
      weights.push_back(sparse::random_pattern(round_up(size.x, block.rows),
                                               round_up(size.y, block.cols), block, density,
                                               seed + std::uint64_t(g)));
    Random random(seed);
    for (Matrix<T>* m : {&q_grad, &s})
      for (T& v : m->elements()) v = T(float(random.below(5)) - 2.0f);
  }

  double score(std::int64_t group, BlockAt at, BlockScore rule) const {
    const BlockShape b = problem.block;
    const Dims& size = problem.size;
    double sum = 0, most = 0;
    for (std::int64_t x = at.row * b.rows; x < std::min((at.row + 1) * b.rows, size.x); ++x)
      for (std::int64_t y = at.col * b.cols; y < std::min((at.col + 1) * b.cols, size.y); ++y) {
        double g = 0;
        for (std::int64_t z = 0; z < size.z; ++z)
          g += double(float(q_grad(group * size.x + x, z))) *
               double(float(s(group * size.y + y, z)));
        sum += std::abs(g);
        most = std::max(most, std::abs(g));
      }
    return rule == BlockScore::Sum ? sum : most;
  }

  std::vector<BlockAt> wanted(std::int64_t k, std::int64_t group, BlockScore rule) const {
    const Csr<float>& taken = weights[std::size_t(group)];
    std::vector<std::pair<double, BlockAt>> all;
    for (std::int32_t row = 0; row < taken.block_rows(); ++row)
      for (std::int32_t col = 0; col < taken.block_cols(); ++col) {
        const auto first = taken.col.begin() + taken.row_begin[std::size_t(row)],
                   last = taken.col.begin() + taken.row_begin[std::size_t(row) + 1];
        if (!std::binary_search(first, last, col))
          all.push_back({-score(group, {row, col}, rule), {row, col}});
      }
    std::sort(all.begin(), all.end());
    std::vector<BlockAt> places;
    for (std::int64_t i = 0; i < k; ++i) places.push_back(all[std::size_t(i)].second);
    std::sort(places.begin(), places.end());
    return places;
  }
};

template <class T>
class LargestGradientsOf : public testing::Test {};
using Types = testing::Types<float, Half, BFloat16>;
TYPED_TEST_SUITE(LargestGradientsOf, Types);

TYPED_TEST(LargestGradientsOf, AreThoseOfASortOnBothMachinesForEveryGroup) {
  const auto executor = make_executor(2);
  const device::Machine machine = machine_of(12);
  for (const BlockShape block : {BlockShape{1, 1}, BlockShape{4, 4}, BlockShape{3, 2}})
    for (const double density : {0.0, 0.3}) {
      const Growth<TypeParam> growth({2, 37, 53, 7}, block, density, 3);
      runtime::FullyConnected layer(growth.problem, planner::plan_or_throw(growth.problem, machine),
                                    machine, device::ExchangeMode::Share, *executor);
      ASSERT_FALSE(layer.set_weights(sparse::checked(growth.weights)));
      host::HostLayer on_host(growth.problem, host::read_host_cpu(), *executor);
      on_host.set_weights(sparse::checked(growth.weights));
      for (std::int64_t group = 0; group < 2; ++group)
        for (const BlockScore rule : {BlockScore::Sum, BlockScore::Max}) {
          const auto wanted = growth.wanted(9, group, rule);
          const auto found = layer.largest_gradients<TypeParam>(9, growth.q_grad.view(),
                                                                growth.s.view(), rule, group);
          EXPECT_EQ(found.places, wanted) << block.rows << "x" << block.cols;
          EXPECT_GT(found.ledger.total(), Cycles());
          EXPECT_EQ(on_host.largest_gradients<TypeParam>(9, growth.q_grad.view(), growth.s.view(),
                                                         rule, group),
                    wanted);
        }
    }
}

TEST(LargestGradients, LeaveTheLayerItsBucketsAndItsNextPass) {
  const auto executor = make_executor(1);
  Growth<float> growth({1, 96, 128, 8}, {1, 1}, 0.2, 5);
  const device::Machine machine = machine_of(8, 9000);
  const planner::Plan plan = planner::plan_or_throw(growth.problem, machine);
  runtime::FullyConnected layer(growth.problem, plan, machine, device::ExchangeMode::Share,
                                *executor);
  ASSERT_FALSE(layer.set_weights(sparse::checked(growth.weights)));
  Matrix<float> before(96, 8), after(96, 8);
  layer.forward<float>(growth.s.view(), before.view());
  const auto found = layer.largest_gradients<float>(300, growth.q_grad.view(), growth.s.view());
  EXPECT_EQ(found.places, growth.wanted(300, 0, BlockScore::Sum));
  layer.forward<float>(growth.s.view(), after.view());
  EXPECT_EQ(before.elements().size(), after.elements().size());
  EXPECT_TRUE(
      std::equal(before.elements().begin(), before.elements().end(), after.elements().begin()));
  // A machine that is full of buckets has no memory for a search.
  device::Machine full = machine;
  full.tile_memory = layer.high_water();
  runtime::FullyConnected tight(growth.problem, plan, full, device::ExchangeMode::Share, *executor);
  ASSERT_FALSE(tight.set_weights(sparse::checked(growth.weights)));
  const std::int64_t most = 96 * 128 - growth.weights[0].blocks();
  EXPECT_THROW(tight.largest_gradients<float>(most, growth.q_grad.view(), growth.s.view()), Error);
}

TEST(LargestGradients, MayBeAsLargeAsFloatsAreAndNoLarger) {
  const auto executor = make_executor(1);
  Growth<float> growth({1, 20, 40, 1}, {1, 1}, 0, 1);
  host::HostLayer layer(growth.problem, host::read_host_cpu(), *executor);
  layer.set_weights(sparse::checked(growth.weights));
  growth.q_grad(7, 0) = std::numeric_limits<float>::max() / 2;
  for (std::int64_t y = 0; y < 40; ++y) growth.s(y, 0) = y == 30 ? 2.0f : 1.0f;
  const auto search = [&] {
    return layer.largest_gradients<float>(1, growth.q_grad.view(), growth.s.view());
  };
  EXPECT_EQ(search(), (std::vector<BlockAt>{{7, 30}}));
  growth.s(31, 0) = 3;
  EXPECT_THAT(search, ThrowsMessage<Error>(HasSubstr("31")));
}

TEST(LargestGradients, RefuseWhatIsNotOfTheLayer) {
  const auto executor = make_executor(1);
  Growth<float> growth({2, 20, 30, 4}, {1, 1}, 0.2, 1);
  const device::Machine machine = machine_of(4);
  runtime::FullyConnected layer(growth.problem, planner::plan_or_throw(growth.problem, machine),
                                machine, device::ExchangeMode::Share, *executor);
  host::HostLayer on_host(growth.problem, host::read_host_cpu(), *executor);
  const MatrixView<const float> q = growth.q_grad.view(), s = growth.s.view();
  EXPECT_THAT([&] { layer.largest_gradients<float>(1, q, s); },
              ThrowsMessage<Error>(HasSubstr("call set_weights first")));
  ASSERT_FALSE(layer.set_weights(sparse::checked(growth.weights)));
  on_host.set_weights(sparse::checked(growth.weights));
  const auto both = [&](std::int64_t k, auto q_grad, auto in, std::int64_t group,
                        const char* text) {
    EXPECT_THAT([&] { layer.largest_gradients<float>(k, q_grad, in, BlockScore::Sum, group); },
                ThrowsMessage<Error>(HasSubstr(text)));
    EXPECT_THAT([&] { on_host.largest_gradients<float>(k, q_grad, in, BlockScore::Sum, group); },
                ThrowsMessage<Error>(HasSubstr(text)));
  };
  both(-1, q, s, 1, "weights of group 1: -1 of 480 free places");
  both(481, q, s, 0, "weights of group 0: 481 of 480 free places");
  both(3, s, q, 0, "60 x 4");
  both(3, q, s, 2, "group is 2");
  EXPECT_TRUE(layer.largest_gradients<float>(0, q, s).places.empty());
  EXPECT_TRUE(on_host.largest_gradients<float>(0, q, s).empty());
}

TEST(SerialSplits, AreMoreOnTilesOfLittleMemory) {
  const auto executor = make_executor(1);
  for (const DataType type : {DataType::Float, DataType::Half}) {
    const Problem problem{.size = {2, 61, 53, 7}, .density = 0.03, .data_type = type};
    const std::int64_t little = type == DataType::Float ? 3600 : 2250;
    for (const std::int64_t memory : {std::int64_t{638976}, little}) {
      const device::Machine machine = machine_of(12, memory);
      planner::Options options;
      options.constraints.use_dense = false;
      options.available_memory_proportion = 1;
      runtime::FullyConnected layer(problem, planner::plan_or_throw(problem, machine, options),
                                    machine, device::ExchangeMode::Isolate, *executor);
      EXPECT_EQ(layer.dense_grad_w_splits() > 1, memory == little);
    }
  }
}

// A flipped bit of a partial sum may hide the largest gradient, so it must not pass unseen.
TEST(LargestGradients, NoticeAFaultAndFindThePlacesInASecondRun) {
  const auto executor = make_executor(1);
  Growth<float> growth({1, 24, 24, 4}, {1, 1}, 0.2, 2);
  const device::Machine machine = machine_of(4);
  runtime::FullyConnected layer(growth.problem, planner::plan_or_throw(growth.problem, machine),
                                machine, device::ExchangeMode::Isolate, *executor);
  ASSERT_FALSE(layer.set_weights(sparse::checked(growth.weights)));
  const auto search = [&](const runtime::PassOptions& options, runtime::LargestGradients& found) {
    return layer.largest_gradients<float>(10, growth.q_grad.view(), growth.s.view(),
                                          BlockScore::Sum, 0, options, found);
  };
  runtime::LargestGradients found;
  ASSERT_TRUE(search({}, found));
  const auto wanted = found.places;
  const std::int64_t last = std::ssize(found.ledger.steps) - 1;
  int noticed = 0;
  for (std::int64_t bit = 0; bit < 4000; bit += 37) {
    verify::Checksums sums;
    std::optional<device::Struck> struck;
    runtime::TilePass options;
    options.pass.self_check = &sums;
    options.tiles.fault = device::Fault{TileId(1), last, bit};
    options.tiles.struck = &struck;
    options.pass.repair = true;
    ASSERT_TRUE(search(options, found));
    EXPECT_EQ(found.places, wanted);
    if (!sums.first_failure.empty()) ++noticed;
    EXPECT_EQ(std::ssize(found.ledger.steps), last + 1);
  }
  EXPECT_GT(noticed, 10);
}

}  // namespace
}  // namespace tessera
