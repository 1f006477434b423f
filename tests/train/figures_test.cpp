// The figures of a run, as values, text and JSON: each is where it belongs and fits the others.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tessera/tests/train/training_case.hpp"
#include "tessera/train/machine_step.hpp"
#include "tessera/train/modelled_machine.hpp"
#include "tessera/train/pattern_update.hpp"

namespace tessera::train {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// A run on a modelled machine of six steps, of which two rewire.
struct MachineRun {
  std::unique_ptr<Executor> executor = make_executor(2);
  ModelledMachine machine{"gc200"};
  DataSet data = test::small_data();
  Network<> network{test::small_network(), machine.layers(*executor), *executor};
  Trainer trainer;

  explicit MachineRun(const Method& method, const Optimiser& optimiser)
      : trainer(network, data, options(method, optimiser)) {
    for (int i = 0; i < 6; ++i) trainer.step();
  }

  static TrainOptions options(const Method& method, const Optimiser& optimiser) {
    TrainOptions options = test::small_options(method);
    options.optimiser = optimiser;
    return options;
  }
};

TEST(MachineStep, IsTheSumOfItsPartsInEveryForm) {
  const MachineRun run(RigL{}, {.rule = Adam{}});
  const MachineStep step = machine_step(run.trainer, run.machine).value();
  Cycles cycles, dense;
  for (const StepPass& one : step.passes) cycles += one.cycles, dense += one.dense.value();
  for (const report::ComparedPass& sum : step.comparison.passes) {
    double sparse = 0, all = 0;
    for (const StepPass& one : step.passes) {
      sparse += one.pass == sum.pass ? double(one.cycles.value) : 0;
      all += one.pass == sum.pass ? double(one.dense->value) : 0;
    }
    EXPECT_EQ(sum.sparse, sparse);
    EXPECT_EQ(sum.dense, all);
  }
  EXPECT_EQ(step.comparison.passes.size(), 3U);
  EXPECT_EQ(step.comparison.sparse_cost(), double(cycles.value));
  for (const OptimiserStep& one : step.optimisers) {
    cycles += one.cycles, dense += one.dense;
  }
  EXPECT_EQ(step.cycles(), cycles);
  EXPECT_DOUBLE_EQ(step.seconds() * step.machine.clock_hz, double(cycles.value));
  EXPECT_DOUBLE_EQ(step.dense_seconds().value() * step.machine.clock_hz, double(dense.value));
  MachineStep without = step;
  without.passes.back().dense.reset();
  EXPECT_FALSE(without.dense_seconds());
  const json made = json::parse(to_json(step));
  const std::string text = to_text(step);
  ASSERT_EQ(made["passes"].size(), step.passes.size());
  for (std::size_t i = 0; i < step.passes.size(); ++i) {
    EXPECT_EQ(made["passes"][i]["layer"], step.passes[i].layer);
    EXPECT_EQ(made["passes"][i]["cycles"], step.passes[i].cycles.value);
    EXPECT_EQ(made["passes"][i]["dense_cycles"], step.passes[i].dense->value);
    EXPECT_THAT(text, HasSubstr(std::to_string(step.passes[i].dense->value)));
  }
  EXPECT_EQ(made["cycles"], cycles.value);
  EXPECT_EQ(made["pattern_bytes"], step.pattern_bytes.value);
  ASSERT_EQ(step.searches.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const SearchFigures& all = run.network.state(std::int64_t(i)).made.machine->search_figures();
    EXPECT_EQ(all.searches, 2) << "one for each rewire";
    EXPECT_EQ(step.searches[i].layer, std::int64_t(i) + 1);
    EXPECT_EQ(step.searches[i].gradient.value, all.gradient.value / 2);
    EXPECT_EQ(made["searches"][i]["selection_cycles"], all.selection.value / 2);
  }
}

// With random places there is no search, and the bytes are those of the layers alone.
TEST(PatternUpdate, SendsEveryStateOfTheOptimiserBesideTheValues) {
  const MachineRun plain(Set{}, {.rule = Sgd{}}), adam(Set{}, {.rule = Adam{}}),
      search(RigL{}, {.rule = Sgd{}});
  Bytes words, values, read;
  for (std::int64_t i = 0; i < plain.network.layers(); ++i) {
    const UpdateTraffic& traffic = plain.network.state(i).made.machine->update_traffic();
    EXPECT_EQ(traffic.updates, i + 1 < plain.network.layers() ? 2 : 0) << "the last one is dense";
    words += traffic.words, values += traffic.values, read += traffic.read;
  }
  const PatternUpdate without = pattern_update(plain.trainer, plain.machine).value();
  EXPECT_EQ(without.rewires, 2);
  EXPECT_EQ(without.upload.value, (words + values).value / 2);
  EXPECT_EQ(without.download.value, read.value / 2);
  const device::HostLink& link = plain.machine.link();
  EXPECT_DOUBLE_EQ(without.upload_seconds, link.transfer_seconds(without.upload));
  EXPECT_DOUBLE_EQ(without.download_seconds, link.transfer_seconds(without.download));
  EXPECT_GT(without.upload_seconds, 0);
  EXPECT_DOUBLE_EQ(without.seconds(),
                   without.upload_seconds + without.download_seconds + without.host_seconds);
  EXPECT_EQ(without.searches, 0);
  EXPECT_EQ(without.gradient, Cycles());
  EXPECT_GE(without.host_seconds, 0);
  Bytes adam_values, adam_words, adam_read;
  for (std::int64_t i = 0; i < adam.network.layers(); ++i) {
    const UpdateTraffic& traffic = adam.network.state(i).made.machine->update_traffic();
    adam_words += traffic.words, adam_values += traffic.values, adam_read += traffic.read;
  }
  const PatternUpdate with = pattern_update(adam.trainer, adam.machine).value();
  EXPECT_EQ(with.upload.value, (adam_words + adam_values + adam_values + adam_values).value / 2);
  EXPECT_EQ(with.download.value, (adam_read + adam_values + adam_values).value / 2);
  const PatternUpdate found = pattern_update(search.trainer, search.machine).value();
  EXPECT_EQ(found.searches, 2) << "one for each layer";
  EXPECT_DOUBLE_EQ(found.machine_seconds, double((found.gradient + found.selection).value) /
                                              search.machine.machine().clock_hz);
  const Trainer& trainer = search.trainer;
  EXPECT_LE(found.host_seconds * 2, trainer.pattern_changes().seconds);
}

TEST(PatternUpdate, TheIntervalIsTheLeastWithWhichRewiresAreRareEnough) {
  const double rewire = 3.14e-3, step = 1.1e-4;
  const std::int64_t n = steps_for_share(rewire, step, 0.05);
  const auto share = [&](std::int64_t steps) { return rewire / (rewire + double(steps) * step); };
  EXPECT_LT(share(n), 0.05);
  EXPECT_GE(share(n - 1), 0.05);
  const double dense = 1.5e-4;
  const auto beats = steps_to_beat(rewire, step, dense);
  ASSERT_TRUE(beats);
  EXPECT_LT(rewire + double(*beats) * step, double(*beats) * dense);
  EXPECT_GE(rewire + double(*beats - 1) * step, double(*beats - 1) * dense * (1 - 1e-12));
  EXPECT_FALSE(steps_to_beat(rewire, step, step));
}

TEST(PatternUpdate, SaysInTextAndJsonWhenItPays) {
  const PatternUpdate update{.rewires = 3,
                             .upload = Bytes(1000),
                             .download = Bytes(2000),
                             .upload_seconds = 0.001,
                             .download_seconds = 0.002,
                             .host_seconds = 0.003,
                             .gradient = Cycles(40),
                             .selection = Cycles(5),
                             .searches = 1.5,
                             .machine_seconds = 0.004};
  EXPECT_DOUBLE_EQ(update.seconds(), 0.01);
  const device::HostLink link{};
  const auto text = [&](std::optional<double> dense) {
    return to_text(update, 0.001, dense, link, "bow");
  };
  EXPECT_THAT(text(0.002),
              testing::AllOf(HasSubstr("mean of 3: 1000 bytes to bow (1.000 ms) and 2000 "
                                       "from there (2.000 ms)"),
                             HasSubstr("3.000 ms on this computer"), HasSubstr("40 cycles"),
                             HasSubstr("and 5 for"), HasSubstr("4.000 ms; 1.5 runs"),
                             HasSubstr("less than 5 %"), HasSubstr("there are 191 steps"),
                             HasSubstr("with 11 or more")));
  EXPECT_THAT(text(0.001), HasSubstr("a dense step takes less in any case"));
  EXPECT_THAT(text({}), testing::Not(HasSubstr("dense step ")));
  const json made = json::parse(to_json(update, 0.001, 0.002));
  EXPECT_EQ(made["steps_for_5_percent"], 191);
  EXPECT_EQ(made["steps_to_beat_dense"], 11);
  EXPECT_EQ(made["upload_bytes"], 1000);
  EXPECT_EQ(made["download_seconds"], 0.002);
  EXPECT_EQ(made["searches"], 1.5);
  EXPECT_TRUE(json::parse(to_json(update, 0.001, {}))["steps_to_beat_dense"].is_null());
}

// A report whose figures all differ.
TrainReport report_of_two_epochs() {
  TrainReport report{
      .steps = 24,
      .epochs = {{1, 0.75, 0.5, 0.875, 0.25, 1.5}, {2, 0.5, 0.625, 0.75, 0.375, 3.25}},
      .rewires = {{0, 0, 0, 0.25, 0, {3}}, {6, 0.5, 7, 0.125, 0.0625, {1, 2}}},
      .seconds = {}};
  for (std::size_t i = 0; i < kActivities; ++i) report.seconds.of[i] = double(i + 1);
  return report;
}

TEST(TrainReport, HasEveryFigureInTextTableAndJson) {
  const TrainReport report = report_of_two_epochs();
  EXPECT_EQ(report.seconds.sum(), 36);
  EXPECT_EQ(csv_heading() + to_csv(report, "a"),
            "run,epoch,loss,accuracy,test_loss,test_accuracy,seconds\n"
            "a,1,0.750000,0.500000,0.875000,0.250000,1.500\n"
            "a,2,0.500000,0.625000,0.750000,0.375000,3.250\n");
  EXPECT_EQ(epoch_text(report, 0.25),
            "epoch   2  loss 0.5000  train  62.50 %  test  37.50 %      3.2 s  rewires   1  ever "
            "active  12.5 %  density  25.0 %\n");
  EXPECT_THAT(epoch_text(report), testing::Not(HasSubstr("density")));
  const json made = json::parse(to_json(report));
  EXPECT_EQ(made["steps"], 24);
  EXPECT_EQ(made["epochs"][1], json::parse(R"({"epoch": 2, "loss": 0.5, "accuracy": 0.625,
            "test_loss": 0.75, "test_accuracy": 0.375, "seconds": 3.25})"));
  EXPECT_EQ(made["rewires"][1], json::parse(R"({"step": 6, "fraction": 0.5, "moved": 7,
            "ever_active": 0.125, "seconds": 0.0625, "per_input": [1, 2]})"));
  EXPECT_EQ(made["seconds"], json::parse(R"({"batch": 1, "forward": 2, "loss": 3, "grad_w": 4,
            "grad_a": 5, "optimiser": 6, "rewire": 7, "evaluation": 8})"));
}

// The headers name these, and callers who set one field rely on the others.
TEST(TrainDefaults, AreThoseOfTheHeaders) {
  EXPECT_EQ(EpochFigures(), (EpochFigures{0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(RewireFigures(), (RewireFigures{0, 0, 0, 0, 0, {}}));
  EXPECT_EQ(TrainReport().steps, 0);
  EXPECT_EQ(RewireSchedule(), (RewireSchedule{0.3, 1, 0, 100, FractionDecay::Cosine}));
  EXPECT_EQ(DensitySchedule(), (DensitySchedule{1, 0.1, 0, 0, DensityCurve::Cubic}));
  EXPECT_EQ(LearningRate(), (LearningRate{0.1, ConstantRate{}, 0}));
  EXPECT_EQ(StepRate(), (StepRate{1000, 0.1}));
  EXPECT_EQ(Sampled(), (Sampled{2, BlockScore::Sum, Exclude::Kept}));
  EXPECT_EQ(TopK(), (TopK{Search::Exact, 4}));
  EXPECT_EQ(Normalisation(), (Normalisation{0.2860, 0.3530}));
  const NetworkOptions network;
  EXPECT_EQ(network.density, 0.1);
  EXPECT_EQ(network.batch, 128);
  EXPECT_EQ(network.seed, 1U);
  EXPECT_EQ(network.min_per_neuron, 0);
  EXPECT_FALSE(network.constant_fan_in || network.density_changes);
  const TrainOptions training;
  EXPECT_EQ(training.optimiser, (Optimiser{.rule = TorchSgd{0.01, 0.9}, .weight_decay = 2e-4}));
  EXPECT_EQ(training.seed, 1U);
  const TrainState state;
  EXPECT_EQ(state.loss_sum, 0);
  EXPECT_EQ(state.right, 0);
  const PatternChanges changes;
  EXPECT_EQ(changes.rewires, 0);
  EXPECT_EQ(changes.seconds, 0);
  const PatternUpdate update;
  EXPECT_EQ(update.rewires, 0);
  EXPECT_EQ(update.seconds(), 0);
  EXPECT_EQ(update.searches, 0);
}

}  // namespace
}  // namespace tessera::train
