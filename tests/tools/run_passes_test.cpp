#include "tessera/tools/run/run_passes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/tools/options/progress.hpp"

namespace tessera::tools {
namespace {

using testing::ElementsAre;

// A layer on this computer whose runs the test looks at and spoils.
class SeenTarget final : public PassTarget {
 public:
  SeenTarget(host::HostLayer& layer, const Weights& weights)
      : PassTarget(layer, weights), layer_(layer) {}

  bool run(Pass pass, const layer::Operands& operands, const layer::PassOptions& options,
           const FaultOfRun& fault) override {
    runs.push_back(to_string(pass) + (fault.request != nullptr ? " with a fault" : ""));
    if (stops_in == pass) return false;
    layer::PassOptions with = options;
    with.stop = {};
    const bool is_finished = run_pass(layer_, pass, operands, with, times_);
    if (fault.request != nullptr) operands.out.as<float>()(0, 0) += 1;
    return is_finished;
  }
  void take(PassOutcome&& outcome) override { outcomes.push_back(std::move(outcome)); }
  bool is_over() const override { return std::ssize(outcomes) >= most_passes; }

  std::optional<Pass> stops_in;
  std::int64_t most_passes = 3;
  std::vector<std::string> runs;
  std::vector<PassOutcome> outcomes;

 private:
  host::HostLayer& layer_;
  host::HostTimes times_;
};

class RunPassesTest : public testing::Test {
 protected:
  std::int64_t go() { return run_passes(target_, problem_, weights_, arguments_, files_, quiet_); }

  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& [name, bytes] : files_) all.push_back(name);
    return all;
  }

  Arguments arguments_ = [] {
    Arguments a =
        parse_arguments({"test", "--machine=host", "--input-size=12", "--output-size=10",
                         "--density=0.4", "--batch-size=6", "--groups=2", "--threads=1", "--quiet"})
            .arguments;
    a.output_dir = "kept in memory";
    return a;
  }();
  Weights weights_ = make_weights(arguments_);
  Problem problem_ = make_problem(arguments_, weights_);
  std::unique_ptr<Executor> executor_ = make_executor(1);
  host::HostLayer layer_ = [this] {
    host::HostLayer layer(problem_, host::read_host_cpu(), *executor_);
    layer.set_weights(weights_.matrices());
    return layer;
  }();
  SeenTarget target_{layer_, weights_};
  Files files_;
  Progress quiet_{true};
};

TEST_F(RunPassesTest, ChecksAndKeepsTheResultsOfEveryPassAndGroup) {
  EXPECT_EQ(go(), 3);
  EXPECT_THAT(target_.runs, ElementsAre("Fwd", "GradA", "GradW"));
  for (const PassOutcome& outcome : target_.outcomes) {
    ASSERT_TRUE(outcome.verdict);
    EXPECT_TRUE(outcome.verdict->ok());
  }
  EXPECT_EQ(target_.outcomes[0].verdict->compared, 2 * 10 * 6);
  EXPECT_EQ(target_.outcomes[2].verdict->compared, layer_.values());
  EXPECT_THAT(names(), ElementsAre("s.npy", "q_gradient.npy", "q.npy", "s_gradient.npy",
                                   "weight_gradient_0.npz", "weight_gradient_1.npz"));
}

TEST_F(RunPassesTest, ARunInPartsOfTheBatchIsCheckedAsAWhole) {
  problem_.size.z = 4;
  EXPECT_EQ(go(), 3);
  EXPECT_THAT(target_.runs, ElementsAre("Fwd", "Fwd", "GradA", "GradA", "GradW", "GradW"));
  EXPECT_EQ(target_.outcomes[0].verdict->compared, 2 * 10 * 6);
  EXPECT_TRUE(target_.outcomes[0].verdict->ok());
  EXPECT_THAT(names(), ElementsAre("s.npy", "q_gradient.npy", "q.npy", "s_gradient.npy"));
}

TEST_F(RunPassesTest, AStoppedPassHasNoVerdictAndNoFileAndIsTheLast) {
  target_.stops_in = Pass::GradA;
  EXPECT_EQ(go(), 1);
  ASSERT_EQ(target_.outcomes.size(), 2u);
  EXPECT_FALSE(target_.outcomes[1].is_finished);
  EXPECT_FALSE(target_.outcomes[1].verdict);
  EXPECT_THAT(names(), ElementsAre("s.npy", "q_gradient.npy", "q.npy"));
}

TEST_F(RunPassesTest, NoPassBeginsWhenAllIsOver) {
  target_.most_passes = 1;
  EXPECT_EQ(go(), 1);
  EXPECT_THAT(target_.runs, ElementsAre("Fwd"));
}

TEST_F(RunPassesTest, AFaultIsComparedWithARunWithoutIt) {
  arguments_.fault = FaultRequest{.pass = Pass::Fwd, .fault = {}};
  EXPECT_EQ(go(), 3);
  EXPECT_THAT(target_.runs, ElementsAre("Fwd", "Fwd with a fault", "GradA", "GradW"));
  EXPECT_EQ(target_.outcomes[0].fault.substr(0, 25), "fault: no bit was flipped");
  EXPECT_FALSE(target_.outcomes[0].verdict->ok());
  EXPECT_EQ(target_.outcomes[1].fault, "");
}

TEST_F(RunPassesTest, ASelfCheckAddsItsNoteAndItsSums) {
  arguments_.self_check = SelfCheck::Check;
  EXPECT_EQ(go(), 3);
  for (const PassOutcome& outcome : target_.outcomes) {
    ASSERT_TRUE(outcome.self_check);
    EXPECT_GT(outcome.self_check->compared, 0);
    ASSERT_EQ(outcome.notes.size(), 1u);
    EXPECT_THAT(outcome.notes[0], testing::StartsWith("self-check of " + to_string(outcome.pass)));
  }
}

TEST(Weights, CountTheEmptyRowsOfEveryGroup) {
  const auto group = [](std::vector<std::int64_t> row_begin, std::vector<std::int32_t> col) {
    sparse::Csr<float> matrix{.rows = 2,
                              .cols = 3,
                              .block = {},
                              .row_begin = row_begin,
                              .col = col,
                              .values = std::vector<float>(col.size(), 1)};
    return sparse::checked(std::move(matrix));
  };
  Weights weights{.matrix = group({0, 1, 2}, {0, 2}), .rows = 2, .cols = 3};
  weights.further.push_back(group({0, 0, 1}, {1}));
  EXPECT_EQ(weights.empty_rows(), 1);
  EXPECT_EQ(weights.share_of_empty_rows(), 0.25);
}

}  // namespace
}  // namespace tessera::tools
