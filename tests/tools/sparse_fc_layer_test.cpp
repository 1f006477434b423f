#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "tessera/tests/support/process.hpp"
#include "tessera/tests/support/shared_data.hpp"

namespace tessera::test {
namespace {

using testing::HasSubstr;
using testing::Not;

Outcome tool(std::vector<std::string> arguments, const std::string& out_path = {}) {
  arguments.insert(arguments.begin(), TESSERA_SPARSE_FC_LAYER);
  return run(arguments, out_path);
}

// A small layer that runs in no time.
std::vector<std::string> small(std::vector<std::string> more = {}) {
  std::vector<std::string> all{"--input-size=48", "--output-size=32", "--density=0.25",
                               "--batch-size=8", "--tiles-per-ipu=8"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

// A usage error: exit 2, nothing on stdout, and stderr names what is wrong.
void expect_usage_error(const std::vector<std::string>& arguments, const std::string& names) {
  const Outcome outcome = tool(arguments);
  EXPECT_EQ(outcome.exit, 2) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr(names));
}

TEST(SparseFcLayer, HelpNamesEveryOptionAndExitCode) {
  const Outcome outcome = tool({"--help-all"});
  EXPECT_EQ(outcome.exit, 0);
  EXPECT_EQ(outcome.err, "");
  for (const char* word :
       {"--matrix", "--batch-size", "--single-phase", "--block-size", "--machine",
        "--tiles-per-ipu", "--data-type", "--seed", "--input-size", "--output-size", "--density",
        "--sparsity-factor", "Exit codes: 0 success, 1 a check failed, 2 wrong usage"})
    EXPECT_THAT(outcome.out, HasSubstr(word));
}

TEST(SparseFcLayer, RunsAndChecksAllThreePasses) {
  const Outcome outcome = tool(small());
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  for (const char* line :
       {"Fwd     ok: 256 results", "GradA   ok: 384 results", "GradW   ok: 384 results", "PASS: "})
    EXPECT_THAT(outcome.out, HasSubstr(line));
}

TEST(SparseFcLayer, SinglePhasesAddTheirPassToForward) {
  const Outcome fwd = tool(small({"--single-phase=fwd"}));
  EXPECT_THAT(fwd.out, Not(HasSubstr("GradA")));
  EXPECT_THAT(fwd.out, Not(HasSubstr("GradW")));
  const Outcome bwd = tool(small({"--single-phase=bwd"}));
  EXPECT_THAT(bwd.out, HasSubstr("GradA   ok"));
  EXPECT_THAT(bwd.out, Not(HasSubstr("GradW")));
  const Outcome wu = tool(small({"--single-phase=wu"}));
  EXPECT_THAT(wu.out, Not(HasSubstr("GradA")));
  EXPECT_THAT(wu.out, HasSubstr("GradW   ok"));
  for (const Outcome& outcome : {fwd, bwd, wu}) EXPECT_EQ(outcome.exit, 0) << outcome.err;
}

TEST(SparseFcLayer, TheSameCommandPrintsTheSameBytes) {
  const Outcome first = tool(small());
  EXPECT_EQ(first.out, tool(small()).out);
  EXPECT_EQ(first.out, tool(small({"--threads=3"})).out);
  EXPECT_EQ(first.out, tool(small({"--isolate"})).out);
  EXPECT_NE(first.out, tool(small({"--seed=2"})).out);
}

TEST(SparseFcLayer, DensityAndSparsityFactorBothMeanTheShareOfNonZeros) {
  const std::vector<std::string> sizes{"--input-size=48", "--output-size=32", "--batch-size=8",
                                       "--tiles-per-ipu=8"};
  auto density = sizes, factor = sizes;
  density.push_back("--density=0.125");
  factor.push_back("--sparsity-factor=0.125");
  EXPECT_EQ(tool(density).out, tool(factor).out);
  EXPECT_THAT(tool(density).out, HasSubstr("192 elements of 1,536 (density 0.1250)"));
}

TEST(SparseFcLayer, TakesTypesBlocksAndMachines) {
  const TemporaryFolder folder;
  const std::string machine =
      folder.write("mine.json", R"({"base": "bow", "name": "mine", "tiles": 6})");
  for (const char* type : {"float", "half", "bfloat16"})
    for (const char* block : {"1", "4", "8", "16", "2"})
      for (const std::string& name : {std::string("gc200"), std::string("bow"), machine}) {
        const Outcome outcome = tool({"--input-size=64", "--output-size=32", "--density=0.3",
                                      "--batch-size=5", std::string("--data-type=") + type,
                                      std::string("--block-size=") + block, "--machine=" + name});
        EXPECT_EQ(outcome.exit, 0) << type << " block " << block << " " << name << outcome.err;
      }
}

TEST(SparseFcLayer, UsageErrorsNameTheOption) {
  expect_usage_error({}, "--matrix");
  expect_usage_error({"--no-such-option"}, "--no-such-option");
  expect_usage_error({"--input-size=48", "--output-size=32"}, "--density");
  expect_usage_error(small({"--batch-size=0"}), "--batch-size");
  expect_usage_error(small({"--batch-size=x"}), "--batch-size");
  expect_usage_error(small({"--data-type=double"}), "--data-type");
  expect_usage_error(small({"--single-phase=up"}), "--single-phase");
  expect_usage_error(small({"--block-size=0"}), "--block-size");
  expect_usage_error(small({"--on-no-fit=pray"}), "--on-no-fit");
  expect_usage_error(small({"--seed=-1"}),
                     "--seed: the value is -1; it must be a whole number in 0..2^64 - 1");
  expect_usage_error(small({"--seed=18446744073709551616"}),
                     "--seed: the value is 18446744073709551616; it must be");
  expect_usage_error(small({"--matrix=x.mtx"}), "--matrix");
  expect_usage_error(small({"--sparsity-factor=0.5"}), "--sparsity-factor");
  expect_usage_error({"--input-size=48", "--output-size=32", "--density=1.5"}, "--density");
  expect_usage_error({"--input-size=48", "--output-size=32", "--density=0.1", "--tiles-per-ipu=0"},
                     "--tiles-per-ipu is 0; on gc200 it must be in 1..1472");
  expect_usage_error(
      {"--input-size=48", "--output-size=32", "--density=0.1", "--tiles-per-ipu=1473"}, "1..1472");
  expect_usage_error(small({"--machine=gc201"}), "gc201");
  expect_usage_error(small({"--matmul-options={\"nonsense\": 1}"}), "nonsense");
  expect_usage_error(small({"--matmul-options={"}), "--matmul-options");
  expect_usage_error(small({"--plan-constraints={\"partition\": {\"w\": 1}}"}),
                     "--plan-constraints: partition.w is not known; the keys are x, y, z");
}

TEST(SparseFcLayer, BadFilesAreExit3AndNameThePlace) {
  const TemporaryFolder folder;
  const auto expect_bad_file = [&](const std::string& path, const std::string& says) {
    const Outcome outcome = tool({"--matrix=" + path});
    EXPECT_EQ(outcome.exit, 3) << path << ": " << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr(says));
  };
  expect_bad_file(folder / "absent.mtx", "absent.mtx");
  expect_bad_file(folder.write("cut.smtx", "4, 4, 3\n0 1 2 3 3\n0 1\n"), "cut.smtx:3");
  expect_bad_file(folder.write("huge.mtx",
                               "%%MatrixMarket matrix coordinate real general\n"
                               "2000000000 2000000000 1\n1 1 1\n"),
                  "huge.mtx:2");
  expect_bad_file(folder.write("empty.mtx", ""), "empty.mtx");
  expect_bad_file(
      folder.write("complex.mtx",
                   "%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 0\n"),
      "complex");
  const std::string machine = folder.write("machine.json", R"({"base": "gc200", "tilse": 6})");
  const Outcome outcome = tool(small({"--machine=" + machine}));
  EXPECT_EQ(outcome.exit, 3);
  EXPECT_THAT(outcome.err, HasSubstr("tilse"));
}

TEST(SparseFcLayer, AMachineThatIsTooSmallIsExit4) {
  const TemporaryFolder folder;
  const std::string machine =
      folder.write("tiny.json", R"({"base": "gc200", "tiles": 4, "tile_memory": 2048})");
  const Outcome outcome = tool({"--input-size=480", "--output-size=320", "--density=0.25",
                                "--batch-size=64", "--machine=" + machine});
  EXPECT_EQ(outcome.exit, 4) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err, "");
}

TEST(SparseFcLayer, APatternThatDoesNotFitNamesTheProportionThatDoesAndItDoes) {
  const std::vector<std::string> layer{
      "--input-size=256", "--output-size=270",  "--density=0.1",
      "--batch-size=4",   "--tiles-per-ipu=24", R"(--plan-constraints={"useDense": false})"};
  auto tight = layer;
  tight.push_back("--matmul-options={\"metaInfoBucketOversizeProportion\": 0.0005}");
  const Outcome outcome = tool(tight);
  ASSERT_EQ(outcome.exit, 4) << outcome.out << outcome.err;
  EXPECT_EQ(outcome.out, "");
  std::smatch found;
  ASSERT_TRUE(std::regex_search(outcome.err, found,
                                std::regex(R"("metaInfoBucketOversizeProportion": ([0-9.]+)\})")))
      << outcome.err;

  EXPECT_THAT(outcome.err, HasSubstr("it is 0.0005 now"));

  auto enough = layer;
  enough.push_back("--matmul-options={\"metaInfoBucketOversizeProportion\": " + found[1].str() +
                   "}");
  EXPECT_EQ(tool(enough).exit, 0);
}

TEST(SparseFcLayer, ResultsThatCannotBeWrittenAreAnError) {
  const Outcome outcome = tool(small(), "/dev/full");
  EXPECT_EQ(outcome.exit, 6);
  EXPECT_THAT(outcome.err, HasSubstr("standard output"));
}

TEST(SparseFcLayer, HelpThatCannotBeWrittenIsAnErrorToo) {
  const Outcome outcome = tool({"--help"}, "/dev/full");
  EXPECT_EQ(outcome.exit, 6);
  EXPECT_THAT(outcome.err, HasSubstr("standard output"));
}

TEST(SparseFcLayer, TheLargestSeedRuns) {
  EXPECT_EQ(tool(small({"--seed=18446744073709551615"})).exit, 0);
}

TEST(SparseFcLayer, AMachineWithWideWordsGivesTheSameResults) {
  const TemporaryFolder folder;
  const auto results = [&](const char* bits, const char* block) {
    const std::string machine = folder.write(
        std::string("machine") + bits + ".json",
        std::string(R"({"base": "gc200", "name": "mine", "tiles": 8, "word_bits": )") + bits + "}");
    const Outcome outcome = tool({"--input-size=64", "--output-size=48", "--density=0.25",
                                  "--batch-size=8", R"(--plan-constraints={"useDense": false})",
                                  "--machine=" + machine, std::string("--block-size=") + block});
    EXPECT_EQ(outcome.exit, 0) << bits << " bits: " << outcome.err;
    return outcome.out;
  };
  for (const char* block : {"1", "4"}) {
    const std::string narrow = results("16", block), wide = results("32", block);
    EXPECT_NE(narrow, wide) << "words of twice the width take more room";
    for (const char* line : {"Fwd     ok: 384 results", "GradA   ok: 512 results", "GradW   ok: "})
      EXPECT_THAT(wide, HasSubstr(line));
  }
}

TEST(SparseFcLayer, ForcedAndNaturalSpillsPass) {
  const Outcome forced =
      tool(small({"--matmul-options={\"partitioner.forceBucketSpills\": true}",
                  "--plan-constraints={\"partition\": {\"x\": 4, \"y\": 2, \"z\": 1}}"}));
  EXPECT_EQ(forced.exit, 0) << forced.err;
  EXPECT_THAT(forced.out, HasSubstr("travel up to"));
  for (const char* exchange : {"true", "false"}) {
    // The partition is pinned: left alone, the planner takes one that does not spill.
    const Outcome natural =
        tool({"--input-size=1024", "--output-size=1080", "--density=0.1", "--batch-size=4",
              "--tiles-per-ipu=24", "--matmul-options={\"metaInfoBucketOversizeProportion\": 0.01}",
              std::string("--plan-constraints={\"partition\": {\"x\": 6, \"y\": 4, \"z\": 1}, "
                          "\"exchange\": {\"gradWExchangeBuckets\": ") +
                  exchange + "}}"});
    EXPECT_EQ(natural.exit, 0) << natural.err;
    EXPECT_THAT(natural.out, HasSubstr("travel up to"));
  }
}

// A layer whose pinned partition spills, because its buckets have little slack.
std::vector<std::string> spilling(std::vector<std::string> more = {}) {
  std::vector<std::string> all{
      "--input-size=480",
      "--output-size=480",
      "--density=0.1",
      "--batch-size=64",
      "--tiles-per-ipu=24",
      "--single-phase=fwd",
      "--matmul-options={\"metaInfoBucketOversizeProportion\": 0.02}",
      "--plan-constraints={\"useDense\": false, \"partition\": {\"x\": 6, \"y\": 4, \"z\": 1}}"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(SparseFcLayer, SpillingChoosesThePlacementOfSpilledBlocks) {
  const auto buckets = [](const char* choice) {
    const Outcome outcome = tool(spilling({"--json", std::string("--spilling=") + choice}));
    EXPECT_EQ(outcome.exit, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out).at("buckets");
  };
  const auto fewest = buckets("fewest-steps"), greedy = buckets("greedy"),
             even = buckets("even-load");
  EXPECT_EQ(tool(spilling({"--spilling=fewest-steps"})).out, tool(spilling()).out);
  EXPECT_LT(fewest.at("spill_steps"), greedy.at("spill_steps"));
  EXPECT_EQ(greedy.at("spill_steps_at_least"), 0) << "nothing is searched";
  EXPECT_EQ(fewest.at("uneven_visit_cycles"), 0);
  EXPECT_GT(even.at("visit_cycles"), 0);
  EXPECT_LE(even.at("visit_cycles"), even.at("uneven_visit_cycles"));
  EXPECT_THAT(tool(spilling({"--spilling=even-load"})).out, HasSubstr("before evening the load"));
}

TEST(SparseFcLayer, RefusesAChoiceOfSpillingThatHasNoEffect) {
  expect_usage_error(small({"--spilling=never"}), "--spilling");
  expect_usage_error(
      small({"--spilling=greedy", "--matmul-options={\"partitioner.forceBucketSpills\": true}"}),
      "partitioner.forceBucketSpills");
}

TEST(SparseFcLayer, SaysExactlyWhenThePlanIsDense) {
  const std::vector<std::string> layer{"--input-size=65", "--output-size=63", "--density=0.5",
                                       "--batch-size=32", "--tiles-per-ipu=16"};
  for (const char* dense : {"true", "false"}) {
    auto pinned = layer;
    pinned.push_back(std::string("--plan-constraints={\"useDense\": ") + dense + "}");
    const Outcome outcome = tool(pinned);
    EXPECT_EQ(outcome.exit, 0) << outcome.err;
    EXPECT_EQ(outcome.out.find("note      R dense") == 0, dense == std::string("true"))
        << outcome.out;
  }
}

TEST(SparseFcLayer, ValuesThatLeaveHalfAreScaledAndItSaysSo) {
  const TemporaryFolder folder;
  const std::string path = folder.write(
      "large.mtx", "%%MatrixMarket matrix coordinate real general\n4 4 2\n1 1 1e9\n3 2 -2e7\n");
  const Outcome outcome = tool({"--matrix=" + path, "--batch-size=4", "--data-type=half"});
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("values times 2^-16 to stay in range"));
}

}  // namespace
}  // namespace tessera::test
