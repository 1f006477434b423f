#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tessera/tests/support/process.hpp"

// tessera bench --peers, with the libraries that this computer has.
namespace tessera::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

Outcome peers(std::vector<std::string> more) {
  more.insert(more.begin(), {TESSERA_TOOL, "bench", "--machine=host", "--peers"});
  return run(more);
}

const std::vector<std::string> kLayer = {"--input-size=40", "--output-size=24", "--density=0.2",
                                         "--batch-size=8"};

Outcome layer_peers(std::vector<std::string> more) {
  more.insert(more.begin(), kLayer.begin(), kLayer.end());
  return peers(more);
}

TEST(BenchPeers, HasALineForEachPassAndNamesWhatIsFastestOrMissing) {
  const Outcome outcome = layer_peers({});
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  for (const char* pass : {"Fwd", "GradA", "GradW"})
    EXPECT_THAT(
        outcome.out,
        testing::ContainsRegex(std::string("\n") + pass +
                               " +own [0-9.e-]+ ms [0-9.]+ GFLOP/s \\+-[0-9]+ % \\| dense \\(.*\\) "
                               "[0-9.e-]+ ms .*\\| fastest .*, [0-9.]+x\n"));
  for (const std::string library : {"Eigen", "SciPy"}) {
    const auto is_missing = HasSubstr("missing " + library);
    const auto is_in_all_passes =
        testing::ContainsRegex("Fwd[^\n]*\\| " + library + " [^\n]*\nGradA[^\n]*\\| " + library +
                               " [^\n]*\nGradW[^\n]*\\| " + library + " ");
    EXPECT_THAT(outcome.out, testing::AnyOf(is_missing, is_in_all_passes));
  }
  EXPECT_THAT(outcome.out, HasSubstr("\nPASS: "));
  EXPECT_THAT(outcome.out,
              testing::ContainsRegex(
                  "\nverdict    .*Fwd [0-9.]+ ms, [0-9.]+x .* dense \\(.*float\\).*measured"));
}

TEST(BenchPeers, IsUncheckedInPerformanceMode) {
  const Outcome outcome = layer_peers({"--mode=performance", "--single-phase=fwd"});
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\nUNCHECKED: "));
  EXPECT_THAT(outcome.out, Not(HasSubstr("PASS")));
}

TEST(BenchPeers, PrintsALineOfJsonForEachPassAndLibrary) {
  const TemporaryFolder folder;
  const std::string matrix = folder.write("w.smtx", "4, 5, 3\n0 1 1 2 3\n4 0 2\n");
  const Outcome outcome =
      peers({"--matrix", matrix, "--batch-size=4", "--block-size=2", "--threads=2", "--json"});
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  std::istringstream lines(outcome.out);
  std::set<std::string> passes;
  std::map<std::string, int> of_library;
  for (std::string text; std::getline(lines, text);) {
    const json line = json::parse(text);
    passes.insert(line["pass"]);
    ++of_library[line["library"]];
    EXPECT_GT(line["seconds"], 0);
    EXPECT_FALSE(line["is_wrong"]);
    EXPECT_THAT(line["check"].get<std::string>(), HasSubstr("ok: "));
  }
  EXPECT_EQ(passes, (std::set<std::string>{"Fwd", "GradA", "GradW"}));
  for (const auto& [library, count] : of_library) EXPECT_EQ(count, 3) << library;
}

TEST(BenchPeers, RefusesWhatItDoesNotMeasure) {
  EXPECT_EQ(run({TESSERA_TOOL, "bench", "--peers", "--machine=bow", "--input-size=8",
                 "--output-size=8", "--density=0.5"})
                .exit,
            2);
  EXPECT_EQ(layer_peers({"--mode=plan"}).exit, 2);
  EXPECT_EQ(layer_peers({"--", "--input-size=8"}).exit, 2);
  EXPECT_EQ(peers({}).exit, 2);
  const Outcome without = run({TESSERA_TOOL, "bench", "--matrix=w.mtx"});
  EXPECT_EQ(without.exit, 2);
  EXPECT_THAT(without.err, HasSubstr("needs --peers"));
}

}  // namespace
}  // namespace tessera::test
