// Patterns that keep some weights for each neuron, and methods under a schedule of densities.

#include "tessera/train/rewire/neurons.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <numeric>

#include "tessera/base/random.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/support/message_of.hpp"
#include "tessera/tests/train/training_case.hpp"
#include "tessera/train/rewire/carry.hpp"
#include "tessera/train/rewire/drop.hpp"
#include "tessera/train/rewire/method.hpp"
#include "tessera/train/rewire/rows.hpp"

namespace tessera::train {
namespace {

using sparse::Csr;
using test::refusal;
using testing::HasSubstr;

std::vector<std::int64_t> per_row(const Csr<float>& m) {
  std::vector<std::int64_t> counts;
  for (std::size_t r = 0; r + 1 < m.row_begin.size(); ++r)
    counts.push_back(m.row_begin[r + 1] - m.row_begin[r]);
  return counts;
}

std::vector<std::int64_t> per_col(const Csr<float>& m) {
  std::vector<std::int64_t> counts(std::size_t(m.block_cols()));
  for (const std::int32_t col : m.col) ++counts[std::size_t(col)];
  return counts;
}

std::int64_t fewest(const Csr<float>& m) {
  const auto rows = per_row(m), cols = per_col(m);
  return std::min(*std::min_element(rows.begin(), rows.end()),
                  *std::min_element(cols.begin(), cols.end()));
}

Csr<float> with_values(Csr<float> m, std::uint64_t seed) {
  Random random(seed);
  for (float& v : m.values) v = float(random.unit() - 0.5);
  return m;
}

TEST(Neurons, GetTheirLeastBlocksAtTheSameDensity) {
  for (const BlockShape block : {BlockShape{1, 1}, BlockShape{4, 2}})
    for (const std::int64_t least : {0, 1, 3}) {
      const Csr<float> before = sparse::random_pattern(64, 96, block, 0.1, 4);
      if (blocks_for_least(before.block_rows(), before.block_cols(), least) > before.blocks())
        continue;
      const Csr<float> after = with_least_per_neuron(before, least, 8);
      EXPECT_GE(fewest(after), least);
      EXPECT_LE(after.blocks() - before.blocks(), before.blocks() / 20);
      EXPECT_GE(after.blocks(), before.blocks());
      EXPECT_EQ(after, with_least_per_neuron(before, least, 8));
      if (least == 0) {
        EXPECT_EQ(after.col, before.col);
      }
    }
  EXPECT_THAT(
      refusal([] { with_least_per_neuron(sparse::random_pattern(8, 8, {}, 0.2, 1), 4, 1); }),
      HasSubstr("4 blocks for each row and column need 32 blocks, and 13 are stored"));
}

TEST(Neurons, KeepTheirLargestBlocksWhenSmallOnesGo) {
  const Csr<float> m = with_values(sparse::random_pattern(30, 40, {}, 0.3, 2), 5);
  const auto dropped = smallest_blocks(m, m.blocks() * 3 / 4, "weights", 2);
  const Csr<float> after = sparse::with_change(m, {dropped, {}});
  const auto rows = per_row(m), cols = per_col(m), rows_after = per_row(after),
             cols_after = per_col(after);
  for (std::size_t r = 0; r < rows.size(); ++r)
    EXPECT_GE(rows_after[r], std::min<std::int64_t>(2, rows[r]));
  for (std::size_t c = 0; c < cols.size(); ++c)
    EXPECT_GE(cols_after[c], std::min<std::int64_t>(2, cols[c]));
  // Whoever stays and is smaller than somebody who goes is one of the two largest of its line.
  float largest_gone = 0;
  for (const auto at : dropped)
    for (auto i = m.row_begin[std::size_t(at.row)]; i < m.row_begin[std::size_t(at.row) + 1]; ++i)
      if (m.col[std::size_t(i)] == at.col)
        largest_gone = std::max(largest_gone, std::abs(m.values[std::size_t(i)]));
  const std::vector<char> kept = kept_by_neurons(m, 2);
  for (std::int32_t r = 0; r < m.rows; ++r)
    for (auto i = m.row_begin[std::size_t(r)]; i < m.row_begin[std::size_t(r) + 1]; ++i) {
      const sparse::BlockAt at{r, m.col[std::size_t(i)]};
      const bool is_dropped = std::binary_search(dropped.begin(), dropped.end(), at);
      if (is_dropped || std::abs(m.values[std::size_t(i)]) < largest_gone) {
        EXPECT_EQ(kept[std::size_t(i)] != 0, !is_dropped);
      }
    }
  // All that may go: those that nobody keeps.
  EXPECT_EQ(std::ssize(smallest_blocks(m, m.blocks(), "weights", 2)),
            std::count(kept.begin(), kept.end(), 0));
  EXPECT_THAT(refusal([&] { smallest_blocks(m, 1, "weights", -1); }), HasSubstr("at least 0"));
}

TEST(Neurons, AreDeadWithoutWeightsOnEitherSide) {
  const Csr<float> into{3, 2, {}, {0, 1, 1, 2}, {0, 1}, {1, 1}};  // nothing reaches neuron 1
  const Csr<float> out_of{2, 3, {}, {0, 1, 2}, {1, 2}, {1, 1}};   // nobody reads neuron 0
  EXPECT_EQ(dead_neurons(into, out_of, 3), 2);
  const Csr<float> blocks = sparse::random_pattern(4, 4, {2, 2}, 1, 1);
  EXPECT_EQ(dead_neurons(blocks, blocks, 3), 0);
  // Eight neurons in blocks of two, of which one block alone is read.
  const Csr<float> eight = sparse::random_pattern(8, 2, {2, 2}, 1, 1);
  const Csr<float> two_are_read{2, 8, {2, 2}, {0, 1}, {0}, {1, 1, 1, 1}};
  EXPECT_EQ(dead_neurons(eight, two_are_read, 2), 0);
  EXPECT_EQ(dead_neurons(eight, two_are_read, 8), 6);
}

TEST(EveryMethod, HasTheBlocksThatAScheduleAsksFor) {
  const Csr<float> m = with_values(sparse::random_pattern(48, 64, {2, 2}, 0.3, 7), 1);
  Random random(3);
  Matrix<float> q(48, 6), s(64, 6);
  for (float& v : q.elements()) v = float(random.unit());
  for (float& v : s.elements()) v = float(random.unit());
  const GradientBatch batch{q.view(), s.view()};
  const auto executor = make_executor(2);
  const auto blocks_after = [&](const Method& method, std::int64_t blocks, double fraction) {
    const auto change = rewire(method, {.weights = m,
                                        .fraction = fraction,
                                        .batches = {&batch, 1},
                                        .seed = 3,
                                        .executor = *executor,
                                        .blocks = blocks})
                            .change;
    return sparse::with_change(m, change).blocks();
  };
  for (const Method& method : {Method(Set{}), Method(Set{Exclude::Original}), Method(RigL{}),
                               Method(RigL{BlockScore::Max, Exclude::Original}), Method(Sampled{})})
    for (const double fraction : {0.0, 0.3})
      for (const std::int64_t blocks :
           {std::int64_t(1), m.blocks() / 2, m.blocks(), std::int64_t(700), std::int64_t(768)})
        EXPECT_EQ(blocks_after(method, blocks, fraction), blocks) << name_of(method);
  EXPECT_EQ(blocks_after(Prune{}, 100, 0.3), 100);
  EXPECT_THAT(refusal([&] { blocks_after(Prune{}, 400, 0); }), HasSubstr("method prune adds none"));
  EXPECT_THAT(refusal([&] { blocks_after(Static{}, 100, 0); }), HasSubstr("choose prune"));
  EXPECT_THAT(refusal([&] { blocks_after(Set{}, 769, 0); }), HasSubstr("must be in 1..768"));
}

NetworkOptions falling_network(double first = 1) {
  NetworkOptions network = test::small_network();
  network.density = first;
  network.density_changes = true;
  network.min_per_neuron = 1;
  return network;
}

TEST(Trainer, TakesTheDensityToTheEndOfItsSchedule) {
  const DataSet data = test::small_data();
  for (const Method& method :
       {Method(Prune{}), Method(Set{}), Method(RigL{}), Method(Sampled{}), Method(TopK{})})
    for (const double first : {1.0, 0.8}) {
      const auto executor = make_executor(1);
      Network<> network(falling_network(first), host_layers(*executor, true), *executor);
      TrainOptions options = test::small_options(method);
      options.density = {.first = first, .last = 0.25, .end = 30};
      Trainer trainer(network, data, options);
      for (int e = 0; e < 5; ++e) trainer.epoch();
      const auto wanted = blocks_at(network.options(), 0.25);
      for (std::int64_t i = 0; i + 1 < network.layers(); ++i) {
        EXPECT_EQ(network.weights(i).blocks(), wanted[std::size_t(i)]) << name_of(method);
        EXPECT_EQ(std::ssize(trainer.state().weights[std::size_t(i)].arrays[0]),
                  wanted[std::size_t(i)]);
      }
      EXPECT_EQ(network.weights(2).blocks(), 3 * 14) << "the last layer stays dense";
      EXPECT_DOUBLE_EQ(network.density(),
                       double(wanted[0] + wanted[1] + 3 * 14) / (20 * 30 + 30 * 14 + 14 * 3));
      EXPECT_EQ(network.dead_neurons(), 0) << name_of(method);
      EXPECT_GT(trainer.report().epochs.back().test_accuracy, 0.8) << name_of(method);
    }
}

// With one density for all the last layer stays dense, unless it is the only one.
TEST(Trainer, TakesTheOnlyLayerToTheEndOfItsSchedule) {
  const DataSet data = test::small_data();
  const auto executor = make_executor(1);
  NetworkOptions of_one = falling_network();
  of_one.sizes = {20, 3};
  Network<> network(of_one, host_layers(*executor, true), *executor);
  TrainOptions options = test::small_options(Prune{});
  options.density = {.first = 1, .last = 0.5, .end = 30};
  Trainer trainer(network, data, options);
  for (int e = 0; e < 5; ++e) trainer.epoch();
  EXPECT_EQ(network.weights(0).blocks(), blocks_at(of_one, 0.5)[0]);
  EXPECT_LT(network.weights(0).blocks(), 20 * 3);
}

TEST(Trainer, RefusesSchedulesOfDensitiesThatDoNotFit) {
  const DataSet data = test::small_data();
  const auto executor = make_executor(1);
  Network<> network(falling_network(), host_layers(*executor, true), *executor);
  const auto message = [&](const Method& method, const std::optional<DensitySchedule>& density) {
    TrainOptions options = test::small_options(method);
    options.density = density;
    return refusal([&] { Trainer(network, data, options); });
  };
  const DensitySchedule falls{.last = 0.25, .end = 30};
  EXPECT_THAT(message(RigL{}, {}), HasSubstr("there is no schedule"));
  EXPECT_THAT(message(Static{}, falls), HasSubstr("choose prune"));
  EXPECT_THAT(message(RigL{}, DensitySchedule{.first = 0.5, .last = 0.25, .end = 30}),
              HasSubstr("begins with 0.5 and the network has 1"));
  EXPECT_THAT(message(RigL{}, DensitySchedule{.last = 0.25, .end = 50}),
              HasSubstr("the last rewire is at step 45"));
  EXPECT_THAT(message(RigL{}, DensitySchedule{.last = 0.01, .end = 30}), HasSubstr("need"));
  NetworkOptions steady = test::small_network();
  steady.min_per_neuron = 9;
  EXPECT_THAT(refusal([&] { spec_of(steady); }), HasSubstr("min_per_neuron 9 needs "));
}

TEST(ConstantFanIn, IsKeptByEveryMethodThatHasIt) {
  const DataSet data = test::small_data();
  for (const Method& method : {Method(Static{}), Method(Set{}), Method(RigL{}), Method(Prune{})})
    for (const BlockShape block : {BlockShape{1, 1}, BlockShape{2, 2}}) {
      const auto executor = make_executor(2);
      NetworkOptions shape = test::small_network(block);
      shape.constant_fan_in = true;
      shape.density_changes = name_of(method) != "static";
      Network<> network(shape, host_layers(*executor, true), *executor);
      TrainOptions options = test::small_options(method);
      if (shape.density_changes) options.density = {.first = 0.3, .last = 0.2, .end = 30};
      Trainer trainer(network, data, options);
      for (int e = 0; e < 5; ++e) trainer.epoch();
      for (std::int64_t i = 0; i + 1 < network.layers(); ++i) {
        const sparse::Csr<float>& m = network.weights(i);
        EXPECT_EQ(per_row(m), even_rows(m.blocks(), m.block_rows())) << name_of(method);
      }
      EXPECT_GT(trainer.report().epochs.back().test_accuracy, 0.7) << name_of(method);
      if (name_of(method) == "rigl") {
        EXPECT_GT(trainer.report().rewires[1].moved, 0);
      }
    }
  NetworkOptions both = test::small_network();
  both.constant_fan_in = true;
  both.min_per_neuron = 1;
  EXPECT_THAT(refusal([&] { spec_of(both); }), HasSubstr("not both"));
  both.min_per_neuron = 0;
  const auto executor = make_executor(1);
  Network<> network(both, host_layers(*executor), *executor);
  EXPECT_THAT(refusal([&] { Trainer(network, data, test::small_options(TopK{})); }),
              HasSubstr("method top-k keeps no constant fan-in"));
}

TEST(ConstantFanIn, IsPrunedWithoutNewBlocksWhateverTheFraction) {
  const Csr<float> even = with_values(random_even_rows(12, 40, {2, 2}, 39, 4), 1);
  const auto executor = make_executor(1);
  for (const std::int64_t blocks : {39, 37, 36, 35, 20})
    for (const double fraction : {0.0, 0.3, 1.0}) {
      const sparse::PatternChange change = rewire(Prune{}, {.weights = even,
                                                            .fraction = fraction,
                                                            .executor = *executor,
                                                            .blocks = blocks,
                                                            .constant_fan_in = true})
                                               .change;
      EXPECT_TRUE(change.added.empty()) << blocks << " blocks, fraction " << fraction;
      EXPECT_EQ(per_row(sparse::with_change(even, change)), even_rows(blocks, 6));
    }
  // Rows that are not even become so.
  const Csr<float> uneven = with_values(sparse::random_pattern(12, 40, {2, 2}, 0.3, 4), 1);
  ASSERT_NE(per_row(uneven), even_rows(uneven.blocks(), 6));
  const Rewired made = rewire(
      Prune{}, {.weights = uneven, .fraction = 1, .executor = *executor, .constant_fan_in = true});
  EXPECT_EQ(per_row(sparse::with_change(uneven, made.change)), even_rows(uneven.blocks(), 6));
}

TEST(ConstantFanIn, LetsNoBlockReturnWhereTheOldPatternIsExcluded) {
  const auto executor = make_executor(1);
  const auto moved = [&](std::int64_t blocks, Exclude exclude) {
    const Csr<float> even = with_values(random_even_rows(12, 40, {2, 2}, blocks, 4), 1);
    const auto change = rewire(Set{exclude}, {.weights = even,
                                              .fraction = 1,
                                              .seed = 5,
                                              .executor = *executor,
                                              .constant_fan_in = true})
                            .change;
    EXPECT_EQ(per_row(sparse::with_change(even, change)), even_rows(blocks, 6));
    return std::ssize(change.added);
  };
  EXPECT_EQ(moved(36, Exclude::Original), 36);
  EXPECT_EQ(moved(90, Exclude::Original), 30) << "five places of each row are free";
  EXPECT_LT(moved(36, Exclude::Kept), 36) << "a dropped block may be drawn again";
}

TEST(ConstantFanIn, GrowsTheLowestPlacesOfEachRowWithoutBatches) {
  const Csr<float> taken = with_values(random_even_rows(12, 40, {2, 2}, 36, 4), 1);
  const std::vector<std::int64_t> counts = {0, 1, 2, 3, 4, 14};
  const auto executor = make_executor(2);
  const auto found = largest_of_rows(taken, {}, counts, BlockScore::Sum, *executor);
  const auto all = exact_gradients({taken, {}, free_places(taken), BlockScore::Sum}, *executor);
  std::vector<sparse::BlockAt> wanted;
  for (std::int32_t row = 0; row < 6; ++row) {
    std::vector<sparse::BlockAt> free;
    std::copy_if(all.begin(), all.end(), std::back_inserter(free),
                 [&](const sparse::BlockAt& at) { return at.row == row; });
    wanted.insert(wanted.end(), free.begin(), free.begin() + counts[std::size_t(row)]);
  }
  EXPECT_EQ(found, wanted);
}

TEST(ConstantFanIn, GrowsTheLargestGradientsOfEachRow) {
  const Csr<float> taken = with_values(random_even_rows(12, 40, {2, 2}, 36, 4), 1);
  EXPECT_EQ(per_row(taken), std::vector<std::int64_t>(6, 6));
  Random random(5);
  Matrix<float> q(12, 5), s(40, 5);
  for (Matrix<float>* m : {&q, &s})
    for (float& v : m->elements()) v = float(random.below(7) - 3);
  const GradientBatch batch{q.view(), s.view()};
  const std::vector<std::int64_t> counts = {0, 1, 2, 3, 4, 14};
  for (const int threads : {1, 3}) {
    const auto executor = make_executor(threads);
    const auto found = largest_of_rows(taken, {&batch, 1}, counts, BlockScore::Sum, *executor);
    std::vector<sparse::BlockAt> wanted;
    for (std::int32_t row = 0; row < 6; ++row) {
      // A matrix of this row alone, whose largest gradients are searched among all of its places.
      Matrix<float> own(2, 5);
      for (std::int64_t r = 0; r < 2; ++r)
        for (std::int64_t z = 0; z < 5; ++z) own(r, z) = q(2 * row + r, z);
      const auto first = taken.row_begin[std::size_t(row)];
      const Csr<float> one{
          2, 40, {2, 2}, {0, 6}, {taken.col.begin() + first, taken.col.begin() + first + 6}, {}};
      const GradientBatch part{own.view(), s.view()};
      for (const auto at :
           exact_gradients({one, {&part, 1}, counts[std::size_t(row)], BlockScore::Sum}, *executor))
        wanted.push_back({row, at.col});
    }
    EXPECT_EQ(found, wanted);
    EXPECT_THAT(
        refusal([&] { largest_of_rows(taken, {&batch, 1}, {}, BlockScore::Sum, *executor); }),
        HasSubstr("0 numbers for 6 rows"));
  }
  EXPECT_THAT(refusal([&] { random_of_rows(taken, std::vector<std::int64_t>(6, 15), 1); }),
              HasSubstr("15 blocks in row 0; the number must be in 0..14"));
  EXPECT_THAT(refusal([&] { smallest_of_rows(taken, std::vector<std::int64_t>(6, 7)); }),
              HasSubstr("must be in 0..6"));
}

TEST(DensitySchedule, HasTheDensitiesOfItsCurve) {
  DensitySchedule schedule{
      .last = 1.0 / 64, .begin = 100, .end = 300, .curve = DensityCurve::Linear};
  EXPECT_EQ(schedule.at(1), 1);
  EXPECT_EQ(schedule.at(100), 1);
  EXPECT_DOUBLE_EQ(schedule.at(200), (1 + 1.0 / 64) / 2);
  schedule.curve = DensityCurve::Cubic;
  EXPECT_DOUBLE_EQ(schedule.at(200), 1.0 / 64 + (1 - 1.0 / 64) / 8);
  schedule.curve = DensityCurve::Exponential;
  EXPECT_DOUBLE_EQ(schedule.at(200), 1.0 / 8);
  for (const std::int64_t step : {300, 301, 5000}) EXPECT_EQ(schedule.at(step), 1.0 / 64);
  const RewireSchedule rewires{.end = 300};
  const auto message = [&](const DensitySchedule& s) {
    return refusal([&] { check(s, rewires); });
  };
  EXPECT_THAT(message({.first = 0, .end = 1}), HasSubstr("first is 0; it must be above 0"));
  EXPECT_THAT(message({.last = 1.5, .end = 1}), HasSubstr("last is 1.5"));
  EXPECT_THAT(message({.begin = -1, .end = 1}), HasSubstr("begin is -1"));
  EXPECT_THAT(message({.begin = 5, .end = 5}), HasSubstr("end must be above begin"));
  EXPECT_THAT(message({.end = 301}), HasSubstr("the last rewire is at step 300"));
  EXPECT_NO_THROW(check(schedule, rewires));
}

}  // namespace
}  // namespace tessera::train
