#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/tests/support/process.hpp"

namespace tessera::test {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Case {
  std::string name;
  std::vector<std::string> words;
};

// The command lines PopLibs tests its own tool with, word for word.
std::vector<Case> peer_cases() {
  std::ifstream file(TESSERA_SOURCE_DIR "/tests/data/fc_layer_cases.jsonl");
  std::vector<Case> cases;
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line);
    cases.push_back({json.at("name"), json.at("args").get<std::vector<std::string>>()});
  }
  return cases;
}

Outcome tool(std::vector<std::string> words) {
  words.insert(words.begin(), TESSERA_SPARSE_FC_LAYER);
  return run(words);
}

bool has(const Case& c, const std::string& word) {
  return std::find(c.words.begin(), c.words.end(), word) != c.words.end();
}

TEST(PeerCommandLines, AllSixtySixRunAndEveryPassAskedForIsVerified) {
  const std::vector<Case> cases = peer_cases();
  EXPECT_EQ(cases.size(), 66u);
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const Outcome outcome = tool(c.words);
    EXPECT_EQ(outcome.exit, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("\nPASS: "));
    EXPECT_THAT(outcome.out, HasSubstr("Fwd     ok: "));
    const bool fwd = has(c, "--single-phase=fwd"), bwd = has(c, "--single-phase=bwd"),
               wu = has(c, "--single-phase=wu");
    EXPECT_EQ(outcome.out.find("GradA   ok: ") != std::string::npos, !fwd && !wu);
    EXPECT_EQ(outcome.out.find("GradW   ok: ") != std::string::npos, !fwd && !bwd);
    if (has(c, "--partials-type=half")) {
      EXPECT_THAT(outcome.out, HasSubstr("half, sums half"));
    }
  }
}

// The run shows what a line asks for: a line that is read and not obeyed would pass above.
TEST(PeerCommandLines, ForcedSpillsPinnedPlansDenseAndTravellingBucketsAreObeyed) {
  for (const Case& c : peer_cases()) {
    // Few blocks may be moved between the tiles of their own cell alone.
    const bool spills = !has(c, "--input-size=256") &&
                        c.words.end() != std::find_if(c.words.begin(), c.words.end(), [](auto& w) {
                          return w.find("forceBucketSpills\":\"true") != w.npos;
                        });
    const bool buckets =
        has(c, "--plan-constraints={\"exchange\":{\"gradWExchangeBuckets\":true}}");
    const bool dense = has(c, "--plan-constraints={\"useDense\":\"true\"}");
    const bool pinned = c.name == "sparse_fc_layer_fwd_half_float_plan_constraints";
    if (!spills && !buckets && !dense && !pinned) continue;
    SCOPED_TRACE(c.name);
    auto words = c.words;
    words.push_back("--plan-only");
    const Outcome outcome = tool(words);
    EXPECT_EQ(outcome.exit, 0) << outcome.err;
    if (spills) {
      EXPECT_THAT(outcome.out, HasSubstr("(100.00 %)"));
    }
    if (buckets) {
      EXPECT_THAT(outcome.out, HasSubstr("(buckets travel)"));
    }
    if (dense) {
      EXPECT_THAT(outcome.out, HasSubstr("R dense"));
    }
    if (pinned) {
      EXPECT_THAT(outcome.out, HasSubstr("x 6 * y 4 * z 1"));
    }
  }
}

std::vector<std::string> small(std::vector<std::string> more = {}) {
  std::vector<std::string> words{"--input-size=48", "--output-size=32",  "--density=0.25",
                                 "--batch-size=8",  "--tiles-per-ipu=8", "--single-phase=fwd"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(StopPoints, PlanOnlyAndCompileOnlyRunNothing) {
  const std::string sparse = R"(--plan-constraints={"useDense": false})";
  const Outcome plan = tool(small({"--plan-only", sparse})),
                build = tool(small({"--compile-only", sparse}));
  EXPECT_THAT(plan.out, testing::ContainsRegex("buckets   [0-9]+ records"));
  EXPECT_THAT(plan.out, Not(HasSubstr("fullest tile")));
  EXPECT_THAT(build.out, HasSubstr("fullest tile"));
  for (const Outcome& o : {plan, build}) {
    EXPECT_EQ(o.exit, 0) << o.err;
    EXPECT_THAT(o.out, Not(HasSubstr("cycles are modelled")));
  }
  EXPECT_EQ(tool(small({"--plan-only", "--compile-only"})).exit, 2);
}

TEST(StopPoints, IgnoreDataChargesTheSameAndSaysThatNothingWasChecked) {
  const Outcome checked = tool(small()), ignored = tool(small({"--ignore-data"}));
  EXPECT_THAT(ignored.out, HasSubstr("Fwd     not checked\nUNCHECKED: "));
  EXPECT_THAT(ignored.out, Not(HasSubstr("PASS")));
  const auto table = [](const std::string& text) {
    return text.substr(0, text.find("cycles are modelled"));
  };
  EXPECT_EQ(table(checked.out), table(ignored.out));
}

TEST(Reports, CyclesStepsPlanAndSerialSplitsComeWhenAskedFor) {
  const Outcome outcome = tool(
      small({"--report-plan", "--report-total-cycle-counts", "--profile",
             "--report-dense-gradw-serial-splits=1", R"(--plan-constraints={"useDense": false})"}));
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  for (const char* part : {"partition  g1 ", " cycles (modelled)", "slowest", "compute", "exchange",
                           "dense GradW in 1 serial parts: groups 1, inputs 1, outputs 1"})
    EXPECT_THAT(outcome.out, HasSubstr(part));
}

// A cut pass asks once whether anything has spilled.
TEST(Reports, ProfilesCallStepsOfControlByTheirName) {
  const Outcome outcome =
      tool(small({"--profile", "--plan-constraints={\"partition\":{\"x\":2,\"y\":2,\"z\":1}}"}));
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("        control                control  "));
  EXPECT_THAT(outcome.out, HasSubstr("        exchange operands      exchange "));
  EXPECT_THAT(outcome.out, HasSubstr("        multiply               compute  "));
}

TEST(Reports, SerialSplitsAreThoseThatTheLayerRuns) {
  const Problem problem{.size = {1, 4096, 4096, 8}, .density = 0.01};
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = 8;
  const auto executor = make_executor(1);
  runtime::FullyConnected layer(problem, planner::plan_or_throw(problem, machine), machine,
                                device::ExchangeMode::Share, *executor);
  const std::int64_t splits = layer.dense_grad_w_splits();
  EXPECT_GT(splits, 1);
  const Outcome outcome = tool({"--input-size=4096", "--output-size=4096", "--density=0.01",
                                "--batch-size=8", "--tiles-per-ipu=8", "--single-phase=fwd",
                                "--plan-only", "--report-dense-gradw-serial-splits"});
  EXPECT_THAT(outcome.out, HasSubstr("dense GradW in " + std::to_string(splits) + " serial parts"));
  const Outcome is_static = tool(small({"--static", "--report-dense-gradw-serial-splits"}));
  EXPECT_EQ(is_static.exit, 2);
  EXPECT_THAT(is_static.err, HasSubstr("beside buckets"));
}

TEST(WordsOfTheCommandLine, UniqueStartsOfNamesServeAndOthersAreNamed) {
  const Outcome full = tool(small());
  const Outcome starts = tool({"--input-s=48", "--output-s", "32", "--densi=0.25", "--batch=8",
                               "--tiles=8", "--single=fwd"});
  EXPECT_EQ(starts.out, full.out) << starts.err;
  const Outcome several = tool(small({"--weighted-area=3"}));
  EXPECT_EQ(several.exit, 2);
  EXPECT_THAT(several.err, HasSubstr("--weighted-area-begin or --weighted-area-end"));
  EXPECT_THAT(tool(small({"--bach-size=2"})).err, HasSubstr("hint: did you mean --batch-size?"));
}

TEST(WordsOfTheCommandLine, AFileOfOptionsStandsForItsWords) {
  const TemporaryFolder folder;
  const std::string path = folder / "options", json = folder / "options.json";
  std::ofstream(json) << R"({"metaInfoBucketOversizeProportion": 0.5})";
  std::ofstream(path) << "--input-size=48 --output-size 32 # sizes\n--density '0.25'\n"
                      << "--batch-size=8 --tiles-per-ipu=8 --single-phase=fwd\n";
  EXPECT_EQ(tool({"@" + path}).out, tool(small()).out);
  EXPECT_EQ(tool({"@" + path, "--matmul-options", "@" + json}).out,
            tool(small({R"(--matmul-options={"metaInfoBucketOversizeProportion": 0.5})"})).out);
  EXPECT_EQ(tool({"@" + path + ".not"}).exit, 3);
  std::ofstream(path) << "--density '0.25";
  const Outcome open = tool({"@" + path});
  EXPECT_EQ(open.exit, 3);
  EXPECT_THAT(open.err, HasSubstr("not closed"));
}

TEST(WordsOfTheCommandLine, AFileThatNamesItselfEnds) {
  const TemporaryFolder folder;
  const std::string path = folder / "options";
  std::ofstream(path) << "@" << path;
  EXPECT_EQ(tool({"@" + path}).exit, 3);
}

TEST(WordsOfTheCommandLine, ShapesOfOneOrTwoNumbersServe) {
  EXPECT_EQ(tool(small({"--block-size=4"})).out, tool(small({"--block-size={4,4}"})).out);
  EXPECT_EQ(tool(small({"--block-size=2,8"})).exit, 0);
  for (const char* bad :
       {"--block-size={4,4", "--block-size=4,4,4", "--block-size=0,4", "--weighted-area-begin={1}x",
        "--weighted-area-end={-1,2}", "--weighted-area-end={33,48}"})
    EXPECT_EQ(tool(small({bad})).exit, 2) << bad;
}

TEST(WordsOfTheCommandLine, TheClocksSeedIsNamedAndServesAgain) {
  const Outcome clock = tool(small({"--variable-seed"}));
  const std::size_t at = clock.out.find("seed ") + 5;
  const std::string seed = clock.out.substr(at, clock.out.find(';') - at);
  EXPECT_EQ(clock.out, tool(small({"--seed=" + seed})).out);
}

}  // namespace
}  // namespace tessera::test
