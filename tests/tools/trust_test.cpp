#include "tessera/tools/run/trust.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/tests/support/process.hpp"
#include "tessera/tests/tools/json_schema.hpp"

namespace tessera::test {
namespace {

using testing::HasSubstr;

Outcome layer(std::vector<std::string> more) {
  more.insert(more.begin(), {TESSERA_SPARSE_FC_LAYER, "--input-size=64", "--output-size=48",
                             "--density=0.3", "--batch-size=8", "--tiles-per-ipu=8"});
  return run(more);
}

TEST(SelfCheckOption, SaysThatResultsOfEveryPassAddUp) {
  const Outcome outcome = layer({"--self-check"});
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  for (const char* pass : {"Fwd", "GradA", "GradW"})
    EXPECT_THAT(outcome.out, HasSubstr(std::string("self-check of ") + pass + ": ok: "));
  EXPECT_THAT(layer({}).out, testing::Not(HasSubstr("self-check")));
}

TEST(SelfCheckOption, IsAMemberOfEveryPassInTheJson) {
  const auto schema =
      nlohmann::json::parse(read_file(TESSERA_SOURCE_DIR "/docs/report.schema.json"));
  for (const char* machine : {"--machine=gc200", "--machine=host"}) {
    const std::vector<std::string> size = {TESSERA_SPARSE_FC_LAYER, machine,
                                           "--input-size=64",       "--output-size=48",
                                           "--density=0.3",         "--batch-size=8"};
    std::vector<std::string> words = size;
    words.insert(words.end(), {"--self-check", "--json"});
    const auto report = nlohmann::json::parse(run(words).out);
    EXPECT_EQ(schema_breach(schema, report), "") << machine;
    ASSERT_EQ(report["passes"].size(), 3u);
    for (const auto& pass : report["passes"]) {
      EXPECT_GT(pass["self_check"]["sums"], 0) << machine << ' ' << pass["pass"];
      EXPECT_EQ(pass["self_check"]["repeated_because"], "");
    }
    words = size;
    words.push_back("--json");
    const auto unchecked = nlohmann::json::parse(run(words).out);
    for (const auto& pass : unchecked["passes"])
      EXPECT_FALSE(pass.contains("self_check")) << machine;
  }
}

// The exit code is that of a wrong result exactly where results changed, or words cannot be.
TEST(InjectOption, EndsAsAWrongResultDoesOrSaysThatNothingChanged) {
  int caught = 0, harmless = 0;
  for (const char* pass : {"fwd", "bwd", "wu"})
    for (int bit = 6; bit < 24'000; bit += 2400) {
      const Outcome outcome = layer(
          {"--self-check", "--inject=tile=3,step=1,bit=" + std::to_string(bit) + ",pass=" + pass});
      if (outcome.exit == 0) {
        EXPECT_TRUE(outcome.out.find("did not change: harmless") != std::string::npos ||
                    outcome.out.find("no such") != std::string::npos ||
                    outcome.out.find("of its bound") != std::string::npos)
            << outcome.out;
        ++harmless;
        continue;
      }
      EXPECT_EQ(outcome.exit, 1) << pass << ", bit " << bit << ": " << outcome.err;
      EXPECT_TRUE(outcome.err.find("self-check") != std::string::npos ||
                  outcome.out.find("WRONG") != std::string::npos);
      ++caught;
    }
  EXPECT_GT(caught, 3);
  EXPECT_GT(harmless, 3);
}

TEST(InjectOption, IsRefusedForAPassThatDoesNotRun) {
  const std::string fault = "--inject=tile=0,step=0,bit=0,pass=";
  for (const auto& [phase, pass, name] :
       {std::tuple{"fwd", "bwd", "GradA"}, {"bwd", "wu", "GradW"}, {"wu", "bwd", "GradA"}}) {
    const Outcome outcome = layer({std::string("--single-phase=") + phase, fault + pass});
    EXPECT_EQ(outcome.exit, 2) << phase;
    EXPECT_THAT(outcome.err, HasSubstr(std::string("the fault is for ") + name));
  }
}

// An option that changes nothing is refused, and no file is promised that is not written.
TEST(OptionsOfPasses, AreRefusedWhereNoPassRuns) {
  for (const char* stop : {"--plan-only", "--compile-only"})
    for (const char* option : {"--trace=f.json", "--profile", "--report-total-cycle-counts",
                               "--self-check", "--inject=tile=0,step=0,bit=0"}) {
      const Outcome outcome = layer({stop, option});
      EXPECT_EQ(outcome.exit, 2) << option;
      EXPECT_THAT(outcome.err, HasSubstr(std::string("is for passes, and none runs with ") + stop));
    }
}

TEST(WeightedArea, NeedsCorners) {
  const Outcome outcome = layer({"--weighted-area-weighting=3"});
  EXPECT_EQ(outcome.exit, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--weighted-area-weighting: has no area"));
}

TEST(InjectOption, IsReadInAnyOrderAndRefusedWithItsText) {
  const tools::FaultRequest request = tools::parse_fault("bit=17,pass=wu,tile=5,step=3");
  EXPECT_EQ(request.pass, Pass::GradW);
  EXPECT_EQ(request.fault, (device::Fault{TileId(5), 3, 17}));
  EXPECT_EQ(tools::parse_fault("tile=0,step=0,bit=0").pass, Pass::Fwd);
  for (const char* text :
       {"", "tile=5", "tile=5,step=3", "tile=5,step=3,bit=-1", "tile=x,step=3,bit=1",
        "tile=5,step=3,bit=1,pass=up", "tile,step,bit", "="})
    EXPECT_THROW(tools::parse_fault(text), Error) << text;
  const Outcome outcome = layer({"--inject=tile=99,step=0,bit=0"});
  EXPECT_EQ(outcome.exit, 2);
  EXPECT_THAT(outcome.err, HasSubstr("tiles are 0..7"));
}

}  // namespace
}  // namespace tessera::test
