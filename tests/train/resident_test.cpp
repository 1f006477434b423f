// A data set as one resident program, beside the same run layer by layer on this computer.

#include "tessera/train/resident.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/tests/support/message_of.hpp"
#include "tessera/tests/train/training_case.hpp"

namespace tessera::train {
namespace {

using testing::HasSubstr;

device::Machine machine_of(std::int64_t tiles) {
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = tiles;
  return machine;
}

struct Resident {
  std::unique_ptr<Executor> executor = make_executor(2);
  DataSet data = test::small_data();
  ResidentTraining training;

  Resident(const NetworkOptions& network, const TrainOptions& options,
           const device::Machine& machine = machine_of(16))
      : training(network, first_weights(network), data, options, machine, *executor) {}
};

// Sums are added up in another order, in float, in 36 steps.
void expect_losses_of_this_computer(const NetworkOptions& network, const TrainOptions& options,
                                    double bound) {
  Resident resident(network, options);
  Network<> here(network, host_layers(*resident.executor), *resident.executor);
  Trainer trainer(here, resident.data, options);
  for (int e = 0; e < 3; ++e) {
    EXPECT_TRUE(resident.training.epoch());
    trainer.epoch();
    const ResidentEpoch& one = resident.training.report().epochs.back();
    const EpochFigures& other = trainer.report().epochs.back();
    EXPECT_EQ(one.epoch, other.epoch);
    EXPECT_NEAR(one.loss, other.loss, bound * (1 + other.loss)) << name_of(options.optimiser);
    EXPECT_NEAR(one.test_loss, other.test_loss, bound * (1 + other.test_loss));
    EXPECT_NEAR(one.test_accuracy, other.test_accuracy, 0.05);
    EXPECT_EQ(one.cycles,
              Cycles(resident.training.report().step.value * trainer.steps_per_epoch()));
  }
  EXPECT_LT(resident.training.report().epochs.back().loss,
            resident.training.report().epochs.front().loss);
}

TEST(ResidentTraining, HasTheLossesOfTheSameRunOnThisComputer) {
  for (const Optimiser& optimiser :
       {Optimiser{.rule = TorchSgd{}, .weight_decay = 2e-4}, Optimiser{.rule = AdamW{}}}) {
    TrainOptions options = test::small_options(Static{}, 36);
    options.optimiser = optimiser;
    if (states_of(optimiser) == 2) options.rate.first = 0.003;
    for (const BlockShape block : {BlockShape{1, 1}, BlockShape{4, 4}})
      expect_losses_of_this_computer(test::small_network(block), options, 1e-4);
  }
}

TEST(ResidentTraining, TakesASpecWithLayersThatRecompute) {
  planner::NetworkSpec spec = spec_of(test::small_network());
  spec.layers[1].activation = {codelets::Activation::Gelu};
  spec.layers[1].bias = false;
  const TrainOptions options = test::small_options(Static{}, 36);
  expect_losses_of_this_computer({.seed = 3, .spec = spec}, options, 1e-4);
  Resident kept({.seed = 3, .spec = spec}, options);
  spec.layers[0].recompute = true;
  Resident again({.seed = 3, .spec = spec}, options);
  EXPECT_TRUE(kept.training.epoch());
  EXPECT_TRUE(again.training.epoch());
  EXPECT_EQ(kept.training.report().epochs[0].loss, again.training.report().epochs[0].loss);
  EXPECT_LT(kept.training.report().step, again.training.report().step);
}

TEST(ResidentTraining, TakesFewerCyclesThanLayersInProgramsOfTheirOwn) {
  Resident resident(test::small_network(), test::small_options(Static{}));
  EXPECT_TRUE(resident.training.epoch());
  const ResidentReport& report = resident.training.report();
  ASSERT_TRUE(report.layer_by_layer_fits);
  EXPECT_LT(report.step, report.layer_by_layer);
  EXPECT_THAT(to_text(report), HasSubstr("cycles a step"));
}

TEST(ResidentTraining, StopsBetweenTwoStepsAndGoesOn) {
  Resident stopped(test::small_network(), test::small_options(Static{})),
      whole(test::small_network(), test::small_options(Static{}));
  std::stop_source stop;
  EXPECT_FALSE(stopped.training.epoch(stop.get_token(), [&](std::int64_t step) {
    if (step == 4) stop.request_stop();
  }));
  EXPECT_EQ(stopped.training.report().steps, 4);
  EXPECT_TRUE(stopped.training.epoch());
  EXPECT_TRUE(whole.training.epoch());
  EXPECT_EQ(stopped.training.report().epochs[0].loss, whole.training.report().epochs[0].loss);
}

// The only step of an epoch may be the one that makes the weights too large.
TEST(ResidentTraining, StopsAtATestLossThatIsNotFinite) {
  NetworkOptions network = test::small_network();
  network.batch = 200;
  TrainOptions options = test::small_options(Static{});
  options.rate.first = 1e30;
  Resident resident(network, options);
  EXPECT_THAT(test::refusal([&] { resident.training.epoch(); }),
              HasSubstr("resident training: the test loss of step 1"));
}

TEST(ResidentTraining, RefusesMethodsThatChangePatternsAndOtherLosses) {
  const auto refusal = [](const NetworkOptions& network, const Method& method) {
    return test::message_of([&] { Resident(network, test::small_options(method)); },
                            ErrorCode::InvalidArgument);
  };
  EXPECT_THAT(refusal(test::small_network(), RigL{}), HasSubstr("method rigl changes patterns"));
  planner::NetworkSpec spec = spec_of(test::small_network());
  spec.loss = codelets::Loss::MeanSquaredError;
  EXPECT_THAT(refusal({.spec = spec}, Static{}), HasSubstr("must be softmax-cross-entropy"));
  device::Machine small = machine_of(1);
  small.tile_memory = Bytes(4096);
  EXPECT_THROW(Resident(test::small_network(), test::small_options(Static{}), small), Error);
}

}  // namespace
}  // namespace tessera::train
