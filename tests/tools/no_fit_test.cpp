#include "tessera/planner/no_fit.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tessera/planner/plan_json.hpp"
#include "tessera/tests/support/process.hpp"
#include "tessera/tools/options/inputs.hpp"

namespace tessera::test {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const char* const kNoMemory = "--matmul-options={\"availableMemoryProportion\": 0.000001}";

std::vector<std::string> plan_command(std::vector<std::string> more) {
  more.insert(more.begin(), {TESSERA_TOOL, "plan", "--input-size=48", "--output-size=32",
                             "--density=0.25", "--batch-size=8", "--tiles-per-ipu=8"});
  return more;
}

// A layer of 64 x 64 whose batch of 250 is too large for four tiles of 16000 bytes.
struct LargeBatch {
  TemporaryFolder folder;
  std::string machine =
      folder.write("small.json", R"({"base": "gc200", "tiles": 4, "tile_memory": 16000})");

  std::vector<std::string> command(std::vector<std::string> more) const {
    more.insert(more.begin(), {TESSERA_SPARSE_FC_LAYER, "--input-size=64", "--output-size=64",
                               "--density=0.25", "--batch-size=250", "--machine=" + machine});
    return more;
  }
};

TEST(NoFit, FailsWithTheWholeExplanation) {
  Problem problem{.size = {1, 32, 48, 8}, .density = 0.25, .grad_a = true, .grad_w = true};
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = 8;
  planner::Options options;
  options.available_memory_proportion = 0.000001;
  const std::string explained =
      "tessera: " + to_text(planner::explain_no_fit(problem, machine, options));
  for (const auto& more : {std::vector<std::string>{kNoMemory}, {kNoMemory, "--on-no-fit=fail"}}) {
    const Outcome outcome = run(plan_command(more));
    EXPECT_EQ(outcome.exit, 4);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err, explained);
  }
}

TEST(NoFit, OfALayerThatIsToBeRunFailsInTheSameWay) {
  const Outcome outcome = run(LargeBatch().command({}));
  EXPECT_EQ(outcome.exit, 4);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, StartsWith("sparse_fc_layer: no plan for g1 x64 y64 z250"));
  for (const char* part : {"tightest", "methods\n", "would fit", "<- cheapest"})
    EXPECT_THAT(outcome.err, HasSubstr(part));
}

TEST(NoFit, BestEffortSaysWhatWasRelaxedAndThenPlansIt) {
  const Outcome outcome = run(plan_command({kNoMemory, "--on-no-fit=best-effort"}));
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("note       best effort, availableMemoryProportion 0."));
  EXPECT_THAT(outcome.out, HasSubstr("layer      g1 x32 y48 z8"));
  const Outcome fits = run(plan_command({"--on-no-fit=best-effort"}));
  EXPECT_EQ(fits.out, run(plan_command({})).out) << "nothing to relax";
}

TEST(NoFit, BestEffortPlansLoadWithTheirNote) {
  const TemporaryFolder folder;
  const std::string file = folder / "plan.json";
  const Outcome written =
      run(plan_command({kNoMemory, "--on-no-fit=best-effort", "--json", "--output=" + file}));
  EXPECT_EQ(written.exit, 0) << written.err;
  EXPECT_THAT(read_file(file), HasSubstr(R"("relaxation": "best effort, available)"));
  const planner::PlannedLayer loaded = tools::load_plan(file);
  EXPECT_GT(loaded.options.available_memory_proportion, 0.000001);
  EXPECT_EQ(loaded.plan, planner::plan_or_throw(loaded.problem, loaded.machine, loaded.options));
}

TEST(NoFit, BestEffortRunsABatchInPartsAndChecksEveryResult) {
  const LargeBatch layer;
  for (const char* type : {"half", "float"}) {
    const Outcome outcome =
        run(layer.command({"--on-no-fit=best-effort", std::string("--data-type=") + type}));
    ASSERT_EQ(outcome.exit, 0) << outcome.err << outcome.out;
    EXPECT_THAT(outcome.out, StartsWith("note      best effort, batch in "));
    EXPECT_THAT(outcome.out, HasSubstr("results of all "));
    EXPECT_THAT(outcome.out, HasSubstr("Fwd     ok: 16000 results"));
    EXPECT_THAT(outcome.out, HasSubstr("GradA   ok: 16000 results"));
  }
}

TEST(NoFit, BestEffortInPartsChecksTheGradientOfEveryRun) {
  const std::string out = run(LargeBatch().command({"--on-no-fit=best-effort"})).out;
  int runs = 0, gradients = 0;
  const auto number_after = [&](const std::string& words, int& number) {
    const std::size_t at = out.find(words);
    ASSERT_NE(at, std::string::npos) << words << " in\n" << out;
    number = std::stoi(out.substr(at + words.size()));
  };
  number_after("batch in ", runs);
  number_after("GradW   ok: ", gradients);
  EXPECT_GT(runs, 1);
  EXPECT_NE(250 % runs, 0) << "the last part should be a short one";
  EXPECT_EQ(gradients, runs * 1024) << "a quarter of 64 * 64 in every run";
}

TEST(NoFit, BestEffortRunsWithMoreMemory) {
  const Outcome outcome =
      run({TESSERA_SPARSE_FC_LAYER, "--input-size=48", "--output-size=32", "--density=0.25",
           "--batch-size=8", "--tiles-per-ipu=8", kNoMemory, "--on-no-fit=best-effort"});
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("note      best effort, availableMemoryProportion 0."));
  EXPECT_THAT(outcome.out, Not(HasSubstr("for one run")));
}

TEST(NoFit, BestEffortStillFailsWhenNothingHelps) {
  const TemporaryFolder folder;
  const std::string machine =
      folder.write("tiny.json", R"({"base": "gc200", "tiles": 4, "tile_memory": 2048})");
  const Outcome outcome =
      run({TESSERA_SPARSE_FC_LAYER, "--input-size=480", "--output-size=320", "--density=0.25",
           "--batch-size=64", "--machine=" + machine, "--on-no-fit=best-effort"});
  EXPECT_EQ(outcome.exit, 4) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("batch in parts: no value was found that fits"));
}

TEST(NoFit, ASearchThatWasCutShortIsNoMisfit) {
  const Outcome outcome =
      run(plan_command({"--matmul-options={\"searchLimit\": 1}", "--on-no-fit=best-effort"}));
  EXPECT_EQ(outcome.exit, 4) << outcome.out;
  EXPECT_THAT(outcome.err, HasSubstr("within searchLimit 1; raise it"));
}

}  // namespace
}  // namespace tessera::test
