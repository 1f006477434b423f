#include "tessera/train/trainer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "tessera/planner/planner.hpp"
#include "tessera/tests/support/failing_allocations.hpp"
#include "tessera/tests/support/message_of.hpp"
#include "tessera/tests/train/fashion_mnist.hpp"
#include "tessera/tests/train/training_case.hpp"
#include "tessera/train/machine_layer.hpp"
#include "tessera/train/modelled_machine.hpp"
#include "tessera/train/pattern_update.hpp"
#include "tessera/train/rewire/drop.hpp"

namespace tessera::train {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct TrainingRun {
  std::unique_ptr<Executor> executor;
  DataSet data = test::small_data();
  Network<> network;
  Trainer trainer;

  explicit TrainingRun(const TrainOptions& options,
                       const NetworkOptions& shape = test::small_network(),
                       std::unique_ptr<Executor> made = make_executor(1))
      : executor(std::move(made)),
        network(shape, host_layers(*executor), *executor),
        trainer(network, data, options) {}
};

std::vector<Method> methods() {
  return {Method(Static{}), Method(Set{}), Method(RigL{}), Method(Sampled{}),
          Method(Custom{"last", [](const RewireRequest& request) {
                          return sparse::PatternChange{smallest_blocks(request.weights, 1),
                                                       random_places(request.weights, 1, 7)};
                        }})};
}

TEST(Trainer, LearnsThreeClassesWithEveryMethodAndBlock) {
  for (const Method& method : methods())
    for (const BlockShape block : {BlockShape{1, 1}, BlockShape{4, 4}}) {
      TrainingRun run(test::small_options(method), test::small_network(block));
      const std::int64_t before = run.network.weights(0).blocks();
      for (int e = 0; e < 5; ++e) EXPECT_TRUE(run.trainer.epoch());
      const TrainReport& report = run.trainer.report();
      EXPECT_EQ(report.steps, 60);
      EXPECT_GT(report.epochs.back().test_accuracy, 0.85) << name_of(method);
      EXPECT_LT(report.epochs.back().loss, report.epochs.front().loss);
      EXPECT_EQ(run.network.weights(0).blocks(), before);
      const bool rewires = name_of(method) != "static";
      EXPECT_EQ(report.rewires.size(), rewires ? 15U : 1U);
      for (const RewireFigures& r : report.rewires)
        EXPECT_EQ(std::accumulate(r.per_input.begin(), r.per_input.end(), 0) > 0, true);
      EXPECT_EQ(report.rewires.back().ever_active > report.rewires.front().ever_active, rewires);
    }
}

TEST(Trainer, HasTheSameBitsForAnyThreadsAndExecutor) {
  for (const Method& method : methods()) {
    TrainingRun wanted(test::small_options(method));
    for (int e = 0; e < 2; ++e) wanted.trainer.epoch();
    for (const ExecutorKind kind : {ExecutorKind::Threads, ExecutorKind::Tbb})
      for (const int threads : {1, 2, 3, 7}) {
        if (!has_executor(kind)) continue;
        TrainingRun run(test::small_options(method), test::small_network(),
                        make_executor(kind, threads));
        for (int e = 0; e < 2; ++e) run.trainer.epoch();
        EXPECT_EQ(test::bits_of(run.trainer), test::bits_of(wanted.trainer))
            << name_of(method) << ", " << threads << " threads";
      }
  }
}

TEST(Trainer, StopsBetweenTwoStepsAndGoesOnWithTheSameBits) {
  TrainingRun whole(test::small_options(RigL{})), stopped(test::small_options(RigL{}));
  whole.trainer.epoch();
  std::stop_source stop;
  const auto stop_at = [&](std::int64_t step) {
    if (step == 4) stop.request_stop();
  };
  EXPECT_FALSE(stopped.trainer.epoch(stop.get_token(), stop_at));
  EXPECT_EQ(stopped.trainer.report().steps, 4);
  EXPECT_TRUE(stopped.trainer.report().epochs.empty());
  EXPECT_TRUE(stopped.trainer.epoch());
  EXPECT_EQ(test::bits_of(stopped.trainer), test::bits_of(whole.trainer));
}

// The loss of the network on its current batch with these values, by layer, computed in double.
double loss_in_double(Network<>& net, const std::vector<std::vector<float>>& values,
                      const std::vector<std::int32_t>& labels) {
  double loss = 0;
  for (std::size_t z = 0; z < labels.size(); ++z) {
    std::vector<double> now;
    for (std::int64_t y = 0; y < net.input(0).rows; ++y)
      now.push_back(net.input(0)(y, std::int64_t(z)));
    for (std::int64_t i = 0; i < net.layers(); ++i) {
      const sparse::Csr<float>& w = net.weights(i);
      std::vector<double> next(net.state(i).bias.begin(), net.state(i).bias.end());
      for (std::size_t x = 0; x < next.size(); ++x) {
        for (std::int64_t k = w.row_begin[x]; k < w.row_begin[x + 1]; ++k)
          next[x] += double(values[std::size_t(i)][std::size_t(k)]) *
                     now[std::size_t(w.col[std::size_t(k)])];
        if (i + 1 < net.layers()) next[x] = std::max(next[x], 0.0);
      }
      now = next;
    }
    double sum = 0;
    for (const double score : now) sum += std::exp(score);
    loss += std::log(sum) - now[labels[z]];
  }
  return loss / double(labels.size());
}

TEST(Network, HasTheGradientOfThreeLayersByCentralDifferences) {
  const auto executor = make_executor(1);
  Network<> net(test::small_network(), host_layers(*executor), *executor);
  const LabelledImages images = test::three_classes(16, 5);
  Batches batches(images, 16, 1);
  std::vector<std::int32_t> labels(16);
  batches.load(0, 0, net.input(0), labels);
  Random random(9);
  for (std::int64_t i = 0; i < net.layers(); ++i)  // no neuron is exactly at 0
    for (float& b : net.state(i).bias) b = float(random.unit() - 0.5);
  net.forward();
  cross_entropy(net.input(3), labels, net.output_gradient(2));
  net.backward();
  std::vector<std::vector<float>> values;
  for (std::int64_t i = 0; i < net.layers(); ++i) values.push_back(net.weights(i).values);
  for (std::int64_t i = 0; i < net.layers(); ++i)
    for (const auto& [numbers, gradients] :
         {std::pair{&values[std::size_t(i)], &net.state(i).gradients},
          std::pair{&net.state(i).bias, &net.state(i).bias_gradients}})
      for (std::size_t k = 0; k < numbers->size(); k += 3) {
        const float kept = (*numbers)[k];
        constexpr float kStep = 0x1p-18f;  // so small that no neuron changes sides
        (*numbers)[k] = kept + kStep;
        const double above = loss_in_double(net, values, labels), up = (*numbers)[k];
        (*numbers)[k] = kept - kStep;
        const double below = loss_in_double(net, values, labels), down = (*numbers)[k];
        (*numbers)[k] = kept;
        EXPECT_NEAR((*gradients)[k], (above - below) / (up - down), 2e-5)
            << "layer " << i << ", " << k;
      }
}

TEST(Trainer, NeverChangesADenseLayer) {
  TrainOptions options = test::small_options(RigL{});
  NetworkOptions shape = test::small_network();
  shape.density = 1;
  TrainingRun run(options, shape);
  run.trainer.epoch();
  EXPECT_EQ(run.trainer.report().rewires.back().moved, 0);
}

TEST(Trainer, KeepsDenseLayersInBlocksWithTopKAndRefusesSparseOnes) {
  NetworkOptions shape{.spec = spec_of(test::small_network({4, 4}))};
  for (planner::NetworkLayer& layer : shape.spec->layers) layer.density = 1;
  TrainingRun run(test::small_options(TopK{}), shape);
  EXPECT_TRUE(run.trainer.epoch());
  EXPECT_EQ(run.trainer.report().rewires.back().moved, 0);
  shape.spec->layers[1].density = 0.5;
  EXPECT_THAT(test::message_of([&] { TrainingRun(test::small_options(TopK{}), shape); },
                               ErrorCode::InvalidArgument),
              HasSubstr("layer 2 has blocks of 4 x 4"));
}

TEST(Trainer, AllocatesNothingInAStepThatDoesNotRewire) {
  TrainingRun run(test::small_options(Static{}));
  run.trainer.step();
  const long before = test::allocations();
  for (int i = 0; i < 5; ++i) run.trainer.step();
  EXPECT_EQ(test::allocations(), before);
}

TEST(Trainer, KeepsEverythingWhenAnAllocationOfARewireFails) {
  for (const Method& method : {Method(RigL{}), Method(Set{}), Method(Sampled{})}) {
    NetworkOptions shape = test::small_network();
    shape.sizes = {20, 12, 3};
    TrainingRun run(test::small_options(method), shape);
    for (int i = 0; i < 5; ++i) run.trainer.step();  // the sixth step rewires
    // The methods share most of what allocates.
    const long stride = name_of(method) == "rigl" ? 1 : 3;
    const std::vector<double> before = test::bits_of(run.trainer);
    int failures = 0;
    for (long nth = 0;; nth += stride) {
      test::fail_allocation(nth);
      bool failed = false;
      try {
        run.trainer.step();
      } catch (const std::bad_alloc&) {
        failed = true;
      }
      const bool reached = test::allocation_failed();
      test::fail_allocation(-1);
      if (!failed) {
        EXPECT_FALSE(reached) << "a failed allocation was ignored";
        break;
      }
      ++failures;
      ASSERT_EQ(test::bits_of(run.trainer), before) << name_of(method) << ", allocation " << nth;
    }
    EXPECT_GT(failures, 20);
    TrainingRun other(test::small_options(method), shape);
    for (int i = 0; i < 6; ++i) other.trainer.step();
    EXPECT_EQ(test::bits_of(run.trainer), test::bits_of(other.trainer));
  }
}

TEST(Trainer, StopsAtALossThatIsNotFiniteAndKeepsTheStepBefore) {
  TrainOptions options = test::small_options(Static{});
  options.rate.first = 1e30;
  TrainingRun run(options);
  std::string message;
  std::vector<double> before;
  for (int i = 0; message.empty() && i < 12; ++i) {
    before = test::bits_of(run.trainer);
    try {
      run.trainer.step();
    } catch (const Error& error) {
      message = error.what();
    }
  }
  EXPECT_THAT(message, AllOf(HasSubstr("the loss of step "), HasSubstr("in layer ")));
  EXPECT_EQ(test::bits_of(run.trainer), before);
}

// The last step of an epoch may be the one that makes the weights infinite.
TEST(Trainer, StopsAtATestLossThatIsNotFinite) {
  TrainOptions options = test::small_options(Static{});
  TrainingRun run(options);
  while (run.trainer.report().steps < run.trainer.steps_per_epoch()) run.trainer.step();
  for (float& bias : run.network.state(0).bias) bias = std::numeric_limits<float>::infinity();
  EXPECT_THAT(test::refusal([&] { run.trainer.epoch(); }),
              AllOf(HasSubstr("the test loss of step "), HasSubstr("in layer ")));
  EXPECT_TRUE(run.trainer.report().epochs.empty());
}

TEST(Trainer, NamesTheLayerOfAWeightThatIsNotFinite) {
  TrainingRun run(test::small_options(Set{}));
  for (int i = 0; i < 2; ++i) run.trainer.step();  // the third rewires
  TrainState state = run.trainer.state();
  state.weights[1].arrays[0][4] = std::numeric_limits<float>::infinity();  // a moment
  run.trainer.set_state(state);
  const std::vector<double> before = test::bits_of(run.trainer);
  EXPECT_THAT(test::message_of([&] { run.trainer.step(); }, ErrorCode::BadInput),
              AllOf(HasSubstr("layer 2"), HasSubstr("block row")));
  EXPECT_EQ(run.trainer.report().steps, 2);
  EXPECT_EQ(test::bits_of(run.trainer), before);
}

TEST(UsualOptions, RewireForThreeQuartersAndLowerTheRateToTheEnd) {
  for (const std::int64_t steps : {0, 1, 2, 100}) {
    const TrainOptions options = usual_options(Set{}, steps, 0.25);
    EXPECT_EQ(options.schedule.end, steps * 3 / 4);
    EXPECT_EQ(options.rate.first, 0.25);
    EXPECT_EQ(std::get<CosineRate>(options.rate.decay).steps, std::max<std::int64_t>(steps, 1));
  }
}

TEST(Trainer, RefusesDataAndOptionsThatDoNotFit) {
  const auto refusal = [](const TrainOptions& options, const NetworkOptions& shape) {
    return test::message_of([&] { TrainingRun(options, shape); }, ErrorCode::InvalidArgument);
  };
  NetworkOptions shape = test::small_network();
  shape.sizes.front() = 21;
  EXPECT_THAT(refusal(test::small_options(Set{}), shape),
              HasSubstr("images have 20 pixels and the network 21 inputs"));
  shape = test::small_network();
  shape.sizes.back() = 2;
  EXPECT_THAT(refusal(test::small_options(Set{}), shape),
              HasSubstr("there is a label 2 and the network has 2 outputs"));
  shape.sizes = {20};
  EXPECT_THAT(refusal(test::small_options(Set{}), shape), HasSubstr("at least two"));
  shape = test::small_network();
  shape.batch = 201;
  EXPECT_THAT(refusal(test::small_options(Set{}), shape), HasSubstr("1 to 200"));
  TrainOptions options = test::small_options(Set{});
  options.schedule.every = 0;
  EXPECT_THAT(refusal(options, test::small_network()), HasSubstr("every is 0"));
}

TEST(Network, RunsOnAModelledMachineToo) {
  const auto executor = make_executor(2);
  const device::Machine machine = device::machine_preset("gc200");
  const MakeLayer tiles = [&](const Problem& problem) {
    return machine_layer(
        {problem, planner::plan_or_throw(problem, machine, planner::sparse_options()), machine,
         device::ExchangeMode::Share, *executor},
        machine, *executor);
  };
  const DataSet data = test::small_data();
  NetworkOptions shape = test::small_network();
  shape.sizes = {20, 30, 3};
  Network network(shape, tiles, *executor);
  Network<> host(shape, host_layers(*executor), *executor);
  Trainer trainer(network, data, test::small_options(Set{}, 12));
  Trainer on_host(host, data, test::small_options(Set{}, 12));
  for (int i = 0; i < 4; ++i) {
    trainer.step();
    on_host.step();
  }
  EXPECT_NEAR(trainer.state().loss_sum, on_host.state().loss_sum, 1e-3);
  EXPECT_EQ(trainer.report().rewires.back().per_input, on_host.report().rewires.back().per_input);
  const auto update = pattern_update(trainer, ModelledMachine("gc200"));
  ASSERT_TRUE(update);
  EXPECT_GT(update->upload, Bytes());
  EXPECT_EQ(update->searches, 0) << "random places need no search";
}

TEST(FashionMnist, IsLearntToEightyPercentInAHundredSteps) {
  TESSERA_NEED_FASHION_MNIST(all);
  DataSet data = all;
  data.training.labels.resize(12800);
  data.training.pixels.resize(std::size_t(12800 * 784));
  data.test.labels.resize(2000);
  data.test.pixels.resize(std::size_t(2000 * 784));
  const auto executor = make_executor();
  Network<> network({.sizes = {784, 256, 10}}, host_layers(*executor), *executor);
  Trainer trainer(network, data, usual_options(RigL{}, 100));
  trainer.epoch();
  EXPECT_EQ(trainer.report().steps, 100);
  EXPECT_GE(trainer.report().epochs.back().test_accuracy, 0.8);
}

}  // namespace
}  // namespace tessera::train
