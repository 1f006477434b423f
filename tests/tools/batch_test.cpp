#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "tessera/tests/support/process.hpp"
#include "tessera/tools/commands/batch_file.hpp"

namespace tessera::test {
namespace {

using testing::HasSubstr;
using testing::Not;

Outcome tessera(std::vector<std::string> words) {
  words.insert(words.begin(), TESSERA_TOOL);
  return run(words);
}

const std::string kLayer = "--input-size=48 --output-size=32 --density=0.25 --tiles-per-ipu=8";

class BenchCommand : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  TemporaryFolder folder_;
};

TEST_F(BenchCommand, GivesEveryProblemItsStatusAndALineThatRunsItAgain) {
  write("nested", "--input-size=2000 --output-size=2000 --density=0 # nothing to get wrong\n");
  const std::string batch = write(
      "batch", "# a comment\n" + kLayer + "\n\n--batch nested\n" + kLayer +
                   " --matmul-options '{\"availableMemoryProportion\": 0.000001}'\n--no-option\n");
  const Outcome outcome = tessera({"bench", "--batch", batch});
  EXPECT_EQ(outcome.exit, 1) << outcome.err;
  for (const char* part : {"0 PASSED ", "1 MISTRUSTED ", "2 SKIPPED ", "3 INVALID_ARGUMENTS "})
    EXPECT_THAT(outcome.out, HasSubstr(part));
  EXPECT_THAT(outcome.out, HasSubstr("tests:4 passed:1 skipped:1 mistrusted:1 "
                                     "invalid_arguments:1 failed:0 listed:0\n"));
  std::istringstream lines(outcome.out);
  std::string line;
  std::getline(lines, line);
  std::string repro = line.substr(line.find(" : ") + 3);
  repro.replace(0, std::string("sparse_fc_layer").size(), "\"$0\"");
  const Outcome again = run({"/bin/sh", "-c", "exec " + repro, TESSERA_SPARSE_FC_LAYER});
  EXPECT_EQ(again.exit, 0) << again.err;
}

TEST_F(BenchCommand, EndsInAVerdictOnTheProblemsThatHaveADenseLayerBesideThem) {
  const std::string batch = write("batch", kLayer + "\n" + kLayer + " --block-size=4\n");
  const std::string output = folder_ / "results.jsonl";
  for (int i = 0; i < 2; ++i)  // the results of the second call are stored ones
    EXPECT_THAT(tessera({"bench", "--batch", batch, "--output", output}).out,
                testing::ContainsRegex("\nverdict    .*sparse pays in [0-2] of 2 problems; all "
                                       "together [0-9,]+ cycles, [0-9.]+x .* dense "
                                       "\\([0-9,]+\\) \\(modelled\\)\n$"));
  EXPECT_THAT(tessera({"bench", "--mode=list", "--batch", batch}).out, Not(HasSubstr("verdict")));
}

TEST_F(BenchCommand, PrintsCsvWithARowForEachProblemAndTheSummaryBesideIt) {
  const std::string batch = write("batch", kLayer + "\n--no-option\n");
  const Outcome outcome = tessera({"bench", "--batch", batch, "--csv"});
  EXPECT_EQ(outcome.exit, 1);
  EXPECT_THAT(outcome.out,
              testing::StartsWith("problem,status,cycles,planned_cycles,sparse_cycles,dense_cycles,"
                                  "milliseconds,message,limit_milliseconds,command\n0,PASSED,"));
  EXPECT_THAT(outcome.out, HasSubstr("\n1,INVALID_ARGUMENTS,0,0,0,0,"));
  EXPECT_EQ(std::ranges::count(outcome.out, '\n'), 3) << outcome.out;
  EXPECT_THAT(outcome.err, HasSubstr("tests:2 passed:1 "));
  EXPECT_EQ(tessera({"bench", "--batch", batch, "--csv", "--quiet"}).exit, 2);
}

TEST_F(BenchCommand, ModesDoLessAndLess) {
  const std::string batch = write("batch", kLayer + "\n");
  const auto line = [&](const char* mode) {
    return tessera({"bench", "--mode", mode, "--batch", batch}).out;
  };
  EXPECT_THAT(line("correctness"), HasSubstr("0 PASSED cycles "));
  EXPECT_THAT(line("performance"), Not(HasSubstr("cycles 0 planned")));
  EXPECT_THAT(line("plan"), HasSubstr("0 PASSED cycles 0 planned "));
  EXPECT_THAT(line("list"), HasSubstr("0 LISTED cycles 0 planned 0 "));
}

TEST_F(BenchCommand, ShardsShareTheProblemsAndLeaveNoneOut) {
  const std::string batch = write("batch", kLayer + "\n" + kLayer + "\n" + kLayer + "\n");
  std::size_t listed = 0;
  for (const char* shard : {"1/2", "2/2"}) {
    const std::string out =
        tessera({"bench", "--mode=list", "--shard", shard, "--batch", batch}).out;
    for (std::size_t at = 0; (at = out.find(" LISTED ", at)) != out.npos; ++at) ++listed;
  }
  EXPECT_EQ(listed, 3u);
  for (const char* bad : {"0/2", "3/2", "2", "a/b"})
    EXPECT_EQ(tessera({"bench", "--mode=list", "--shard", bad, "--batch", batch}).exit, 2) << bad;
}

TEST_F(BenchCommand, GoesOnWhereItStoppedAfterACutOffLineToo) {
  const std::string batch = write("batch", kLayer + "\n" + kLayer + " --seed=2\n");
  const std::string output = folder_ / "results.jsonl";
  EXPECT_EQ(tessera({"bench", "--batch", batch, "--output", output}).exit, 0);
  std::string text = read_file(output);
  const std::size_t first = text.find('\n');
  // The first line is whole and changed, so that it shows where it came from; the second is cut.
  write("results.jsonl",
        text.substr(0, first).replace(text.find("\"planned_cycles\":") + 17, 1, "9") + "\n" +
            text.substr(first + 1, 20));
  const Outcome again = tessera({"bench", "--batch", batch, "--output", output});
  EXPECT_EQ(again.exit, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr(" planned 9"));
  EXPECT_THAT(again.out, HasSubstr("tests:2 passed:2"));
  write("results.jsonl", "no JSON\n{}\n");
  EXPECT_EQ(tessera({"bench", "--batch", batch, "--output", output}).exit, 3);
}

TEST_F(BenchCommand, EndsWithAnErrorIfAResultCannotBeStored) {
  const std::string batch = write("batch", kLayer + "\n");
  const Outcome outcome = tessera({"bench", "--batch", batch, "--output", "/dev/full"});
  EXPECT_EQ(outcome.exit, 6);
  EXPECT_THAT(outcome.err, HasSubstr("/dev/full: cannot be written: No space left on device"));
}

TEST_F(BenchCommand, OptionsOnALineWithBatchOrResetHoldUntilTheNextReset) {
  write("shapes",
        "--input-size=8 --output-size=8\n--input-size=16 --output-size=8 --density 0.9\n");
  const std::string batch = write("batch",
                                  "--reset --density 0.5 --data-type=float --batch=shapes\n"
                                  "--input-size=32 --output-size=8\n"
                                  "--batch-size=4 --batch shapes\n"
                                  "--reset\n--input-size=64 --output-size=8\n");
  const auto problems = tools::read_batch(batch);
  const auto line = [&](std::size_t i) { return tools::repro_line(problems.at(i)).substr(16); };
  ASSERT_EQ(problems.size(), 6u);
  EXPECT_EQ(line(0), "--density 0.5 --data-type=float --input-size=8 --output-size=8");
  EXPECT_EQ(line(1), "--data-type=float --input-size=16 --output-size=8 --density 0.9");
  EXPECT_EQ(line(2), "--density 0.5 --data-type=float --input-size=32 --output-size=8");
  EXPECT_EQ(line(3),
            "--density 0.5 --data-type=float --batch-size=4 --input-size=8 --output-size=8");
  EXPECT_EQ(line(5), "--input-size=64 --output-size=8") << "reset";
  write("shapes", "--batch\n");
  EXPECT_EQ(tessera({"bench", "--mode=list", "--batch", batch}).exit, 3) << "no file named";
}

TEST_F(BenchCommand, ALimitCutsAProblemShortAndALargerOneRunsItAgain) {
  const std::string batch =
      write("batch", "--input-size=2048 --output-size=2048 --density=0.2 --batch-size=64\n");
  const std::string output = folder_ / "results.jsonl";
  const auto bench = [&](const char* limit) {
    return tessera({"bench", "--mode=performance", "--batch", batch, "--output", output,
                    "--max-ms-per-prb", limit});
  };
  const Outcome cut = bench("1");
  EXPECT_EQ(cut.exit, 4) << cut.err << "nothing but skipped problems";
  EXPECT_THAT(cut.out, HasSubstr("0 SKIPPED "));
  EXPECT_THAT(cut.out, HasSubstr("stopped after --max-ms-per-prb 1\n"));
  const std::string first = read_file(output);
  EXPECT_THAT(bench("1").out, HasSubstr("0 SKIPPED "));
  EXPECT_EQ(read_file(output), first) << "the same limit need not be tried again";
  EXPECT_THAT(bench("0").out, HasSubstr("0 PASSED "));
  EXPECT_NE(read_file(output), first);
  EXPECT_THAT(bench("1").out, HasSubstr("0 PASSED ")) << "whole results hold under any limit";
}

TEST_F(BenchCommand, FilesThatNameEachOtherEndInAnError) {
  write("loop", "--batch loop\n");
  const Outcome outcome = tessera({"bench", "--mode=list", "--batch", folder_ / "loop"});
  EXPECT_EQ(outcome.exit, 3);
  EXPECT_THAT(outcome.err, HasSubstr("8 levels deep"));
}

TEST_F(BenchCommand, StartLeavesOutWhatStandsBefore) {
  const std::string batch = write("batch", kLayer + "\n" + kLayer + " --seed=2\n");
  const std::string out = tessera({"bench", "--mode=list", "--start=1", "--batch", batch}).out;
  EXPECT_THAT(out, testing::StartsWith("1 LISTED "));
  EXPECT_THAT(out, HasSubstr("tests:1 "));
}

}  // namespace
}  // namespace tessera::test
