#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tessera/tests/support/process.hpp"

namespace tessera::test {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using Words = std::vector<std::string>;

Words hostile_layer(const Words& more = {}) {
  Words words{TESSERA_SPARSE_FC_LAYER,
              "--input-size=48",
              "--output-size=32",
              "--density=0.25",
              "--tiles-per-ipu=8",
              "--single-phase",
              "fwd"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

void expect_refusal(const Words& words, const std::string& part, int exit = 2) {
  const Outcome outcome = run(words);
  EXPECT_EQ(outcome.exit, exit) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr(part));
  EXPECT_THAT(outcome.err, StartsWith(std::filesystem::path(words[0]).filename().string() + ": "));
  EXPECT_EQ(outcome.out, "");
}

// Runs bash with "$@" as the words, which start with the program.
Outcome in_shell(const std::string& script, const Words& words) {
  Words command{"/bin/bash", "-c", script, "bash"};
  command.insert(command.end(), words.begin(), words.end());
  return run(command);
}

// Runs the program where no file may grow, as on a full disk; messages follow the output.
Outcome on_a_full_disk(const Words& words) {
  return in_shell("set -o pipefail; (ulimit -f 0; exec \"$@\") 2>&1 | cat", words);
}

TEST(CommandLine, RefusesNumbersThatAreNotFinite) {
  const std::string layer_of = "--input-size=48";
  expect_refusal({TESSERA_TOOL, "compare", "a", "b", "--threshold", "nan"},
                 "--threshold: the value is nan; it must be a number of at least 0");
  expect_refusal({TESSERA_TOOL, "compare", "a", "b", "--threshold", "inf"}, "the value is inf");
  expect_refusal({TESSERA_SPARSE_FC_LAYER, layer_of, "--output-size=32", "--density=nan"},
                 "--density: the value is nan; it must be a number in 0..1");
  expect_refusal({TESSERA_TOOL, "bench", "--max-ms-per-prb=1e300", "--", layer_of},
                 "it must be a number in 0..");
}

TEST(CommandLine, PrintsNoNumberOfHundredsOfDigits) {
  const Outcome outcome = run({TESSERA_TOOL, "bench", "--start=-1", "--", "--input-size=1"});
  EXPECT_EQ(outcome.exit, 2);
  EXPECT_LT(outcome.err.size(), 200u) << outcome.err;
}

TEST(CommandLine, ReadsWholeNumbersAsDecimalOnly) {
  const Words rest{TESSERA_SPARSE_FC_LAYER, "--output-size=32", "--density=0.25", "--plan-only",
                   "--tiles-per-ipu=8"};
  Words zero = rest, hex = rest;
  zero.push_back("--input-size=010");
  hex.push_back("--input-size=0x10");
  EXPECT_THAT(run(zero).out, HasSubstr("y 10 inputs"));
  expect_refusal(hex, "--input-size: the value is 0x10; it must be a whole number in 1..");
}

TEST(CommandLine, TakesSparsityAsTheShareOfZerosInEveryCommand) {
  const Words programs[] = {{TESSERA_SPARSE_FC_LAYER, "--plan-only"},
                            {TESSERA_TOOL, "plan"},
                            {TESSERA_TOOL, "sweep", "--over=batch", "--values=1,2"}};
  for (const Words& program : programs) {
    Words density = program;
    for (const char* word : {"--input-size=48", "--output-size=32", "--tiles-per-ipu=8"})
      density.push_back(word);
    Words sparsity = density;
    density.push_back("--density=0.1");
    sparsity.push_back("--sparsity=0.9");
    const Outcome outcome = run(sparsity);
    EXPECT_EQ(outcome.exit, 0) << outcome.err;
    EXPECT_EQ(outcome.out, run(density).out);
  }
  expect_refusal(hostile_layer({"--sparsity=0.75"}), "--sparsity");
  expect_refusal({TESSERA_SPARSE_FC_LAYER, "--spars=0.75"}, "--spars is ambiguous");
}

TEST(CommandLine, RefusesEmptyValues) {
  for (const char* option : {"--values", "--input", "--output-dir", "--plan", "--html", "--trace"})
    expect_refusal(hostile_layer({option, ""}), std::string(option) + ": the value is empty");
  expect_refusal({TESSERA_TOOL, "plan", "--output=", "--matrix", "x"},
                 "--output: the value is empty");
}

TEST(CommandLine, RefusesPlacesOfFaultsBeyondTheirType) {
  expect_refusal(hostile_layer({"--inject", "tile=4294967296,step=0,bit=0"}), "0..2^31 - 1");
}

TEST(CommandLine, ReadsOnlyPlainFiles) {
  expect_refusal(hostile_layer({"@/dev/zero"}), "/dev/zero: is not a plain file", 3);
  expect_refusal(hostile_layer({"--machine", "/dev/zero"}), "/dev/zero: is not a plain file", 3);
  expect_refusal(hostile_layer({"--config", "/dev/zero"}), "/dev/zero: is not a plain file");
}

TEST(CommandLine, RefusesNamesThatAreTooLongForTheFileSystem) {
  const std::string name(300, 'a');
  const auto refused = [](const Words& words) {
    const Outcome outcome = run(words);
    EXPECT_THAT(outcome.exit, AnyOf(2, 3)) << words.back().substr(0, 20) << outcome.err;
    EXPECT_THAT(outcome.err, Not(HasSubstr("filesystem"))) << words.back().substr(0, 20);
  };
  for (const char* option : {"--plan-cache=", "--output-dir=", "--html=", "--trace=", "--plan=",
                             "--machine=", "--values=", "--input=", "--config=", "@"})
    refused(hostile_layer({option + name}));
  refused({TESSERA_TOOL, "advise", name});
  refused({TESSERA_TOOL, "bench", "--output", name, "--", "-h"});
  refused({TESSERA_TOOL, "train", "--data", name});
}

TEST(CommandLine, LimitsTheSizeOfFilesOfOptions) {
  const TemporaryFolder folder;
  const std::string large = folder.write("large", "");
  std::filesystem::resize_file(large, std::uintmax_t{1} << 34);  // takes no place on the disk
  expect_refusal(hostile_layer({"@" + large}), "larger than", 3);
}

TEST(CommandLine, EscapesControlCharactersOfNamesInMessages) {
  const std::string name = "no\x1b]0;title\x07.mtx";
  for (const Words& words :
       {Words{TESSERA_SPARSE_FC_LAYER, "--matrix", name},
        Words{TESSERA_SPARSE_FC_LAYER, "--" + name}, Words{TESSERA_TOOL, "advise", name}}) {
    const Outcome outcome = run(words);
    EXPECT_THAT(outcome.err, Not(HasSubstr("\x1b")));
    EXPECT_THAT(outcome.err, Not(HasSubstr("\x07")));
    EXPECT_THAT(outcome.err, HasSubstr("\\x1b]0;title\\x07"));
  }
}

TEST(CommandLine, ReportsNamesOfFilesWithEscapes) {
  const TemporaryFolder folder;
  const std::string name = "m\x1b[31m.smtx";
  folder.write(name, "2, 2, 2\n0 1 2\n0 1\n");
  const Words words{TESSERA_SPARSE_FC_LAYER, "--matrix", folder / name, "--tiles-per-ipu=8"};
  const Outcome outcome = run(words);
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_THAT(outcome.out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(outcome.out, HasSubstr("m\\x1b[31m.smtx"));
}

TEST(CommandLine, WritesNoCellThatASpreadsheetTakesForAFormula) {
  const TemporaryFolder folder;
  const std::string name = "=cmd|'!A1.smtx";
  folder.write(name, "2, 2, 2\n0 1 2\n0 1\n");
  const Outcome outcome =
      run({TESSERA_SPARSE_FC_LAYER, "--matrix", name, "--tiles-per-ipu=8", "--csv"}, {},
          folder.path().string());
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AnyOf(HasSubstr("\n'=cmd"), HasSubstr("\n\"'=cmd")));
}

TEST(CommandLine, NeedsNoStderr) {
  for (const char* where : {"2>&-", "2>/dev/full", "2> >(exit 0)"}) {
    const Outcome wrong = in_shell("\"$@\" " + std::string(where), hostile_layer({"--no-option"}));
    EXPECT_EQ(wrong.exit, 2) << where;
    const Outcome right = in_shell("\"$@\" -v " + std::string(where), hostile_layer());
    EXPECT_EQ(right.exit, 0) << where;
    EXPECT_THAT(right.out, HasSubstr("PASS"));
  }
}

TEST(CommandLine, ReportsThatStdoutIsClosed) {
  const TemporaryFolder folder;
  const Outcome outcome = in_shell("\"$@\" >&-", hostile_layer({"--html", folder / "page.html"}));
  EXPECT_EQ(outcome.exit, 6);
  EXPECT_THAT(outcome.err, HasSubstr("standard output: results could not be written"));
}

TEST(Outputs, AreRefusedBeforeTheWorkIfTheyCannotBeWritten) {
  const TemporaryFolder folder;
  const std::string lost = folder / "none/file", file = folder.write("file", "old");
  expect_refusal(hostile_layer({"--html", lost}), "--html: " + lost);
  expect_refusal(hostile_layer({"--trace", lost}), "--trace: " + lost);
  expect_refusal(hostile_layer({"--output-dir", file}), "--output-dir: " + file);
  expect_refusal({TESSERA_TOOL, "plan", "--output", lost}, "--output: " + lost);
  expect_refusal({TESSERA_TOOL, "convert", file, lost + ".mtx"}, "to: " + lost);
  expect_refusal({TESSERA_TOOL, "bench", "--output", lost, "--", "-h"}, "--output: " + lost);
}

TEST(Outputs, KeepTheOldFileAndTheResultsOnAFullDisk) {
  const TemporaryFolder folder;
  const std::string trace = folder.write("trace.json", "old");
  const Outcome outcome = on_a_full_disk(hostile_layer({"--trace", trace}));
  EXPECT_EQ(outcome.exit, 6);
  EXPECT_THAT(outcome.out, HasSubstr("PASS"));
  EXPECT_THAT(outcome.out, HasSubstr(trace + ": cannot be written: File too large"));
  EXPECT_EQ(read_file(trace), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(Outputs, EndWithTheSameCodeHoweverTheyAreWritten) {
  const TemporaryFolder folder;
  const std::string matrix = folder.write("m.smtx", "2, 2, 2\n0 1 2\n0 1\n");
  EXPECT_EQ(on_a_full_disk(hostile_layer({"--output-dir", folder / "out"})).exit, 6);
  EXPECT_EQ(on_a_full_disk({TESSERA_TOOL, "convert", matrix, folder / "m.mtx"}).exit, 6);
}

TEST(Outputs, DoNotIncludeThePlanCache) {
  const TemporaryFolder folder;
  const Outcome outcome = on_a_full_disk(hostile_layer({"--plan-cache", folder.path().string()}));
  EXPECT_EQ(outcome.exit, 0);
  EXPECT_THAT(outcome.out, HasSubstr("sparse_fc_layer: warning: plan cache: "));
  EXPECT_THAT(outcome.out, HasSubstr("PASS"));
}

TEST(Outputs, StayInsideTheirFolder) {
  const TemporaryFolder folder;
  const std::string victim = folder.write("victim", "old");
  std::filesystem::create_directory(folder / "out");
  std::filesystem::create_symlink(victim, folder / "out/report.json");
  const Outcome outcome = run(hostile_layer({"--output-dir", folder / "out"}));
  EXPECT_EQ(outcome.exit, 2);
  EXPECT_THAT(outcome.err, HasSubstr("outside the folder"));
  EXPECT_EQ(read_file(victim), "old");
}

TEST(Bench, EndsWithTheCodeOfMisfitsIfEveryProblemIsSkipped) {
  const std::string lack = "--matmul-options={\"availableMemoryProportion\": 0.000001}";
  const Words words{TESSERA_TOOL,       "bench",          "--", "--input-size=48",
                    "--output-size=32", "--density=0.25", lack};
  const Outcome outcome = run(words);
  EXPECT_EQ(outcome.exit, 4) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("skipped:1"));
}

}  // namespace
}  // namespace tessera::test
