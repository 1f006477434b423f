// The files that a command line names are checked together, before any work.

#include "tessera/tools/options/paths.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tessera/tests/support/process.hpp"
#include "tessera/tools/page/report_page.hpp"

namespace tessera::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using Words = std::vector<std::string>;

Words run_words(const Words& more) {
  Words words{TESSERA_TOOL,       "run", "--input-size=48", "--output-size=32", "--density=0.25",
              "--tiles-per-ipu=8"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

int files_in(const fs::path& folder) {
  return int(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

// Expects a refusal before any work, and that no file came or went.
void expect_refused(const TemporaryFolder& folder, const Words& words, const std::string& option,
                    const std::string& why) {
  const int before = files_in(folder.path());
  const Outcome outcome = run(words);
  EXPECT_EQ(outcome.exit, 2) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr(option + ": "), HasSubstr(why)));
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(files_in(folder.path()), before);
}

TEST(Paths, OfTwoOutputsAreNotOne) {
  const TemporaryFolder folder;
  const std::string file = folder / "x";
  expect_refused(folder, run_words({"--save-buckets", file, "--trace", file}), "--save-buckets",
                 "--trace writes this file, too");
  fs::create_symlink("x", folder / "link");
  expect_refused(folder, run_words({"--save-buckets", file, "--trace", folder / "link"}),
                 "--save-buckets", "--trace writes this file, too");
  expect_refused(folder,
                 run_words({"--save-buckets", file, "--trace",
                            folder / "../" + folder.path().filename().string() + "/x"}),
                 "--save-buckets", "--trace writes this file, too");
  EXPECT_EQ(run(run_words({"--save-buckets", "/dev/null", "--trace", "/dev/null",
                           "--plan-constraints", R"({"useDense": false})"}))
                .exit,
            0);
}

TEST(Paths, OfAnOutputIsNotThatOfAnInput) {
  const TemporaryFolder folder;
  const std::string matrix = folder.write("w.smtx", "2, 2, 2\n0 1 2\n0 1\n");
  const std::string words = folder.write("words", "--batch-size 4\n");
  const std::string reads = "reads this file, which would be replaced";
  expect_refused(folder, {TESSERA_TOOL, "run", "--matrix", matrix, "--trace", matrix}, "--trace",
                 "--matrix " + reads);
  expect_refused(folder, {TESSERA_TOOL, "convert", matrix, matrix}, "to", "from " + reads);
  expect_refused(folder, run_words({"@" + words, "--trace", words}), "--trace",
                 "@" + words + " " + reads);
  expect_refused(folder, {TESSERA_TOOL, "bench", "--batch", words, "--output", words}, "--output",
                 "--batch " + reads);
  if (tools::can_make_pages())
    expect_refused(folder, {TESSERA_TOOL, "network", words, "--html", words}, "--html",
                   "file " + reads);
  EXPECT_EQ(read_file(matrix), "2, 2, 2\n0 1 2\n0 1\n");
}

TEST(Paths, OfTheResultsOfARunAreInItsFolder) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "out");
  fs::create_symlink(folder / "victim.npy", folder / "out/q.npy");  // which does not exist
  expect_refused(folder, run_words({"--output-dir", folder / "out"}), "--output-dir",
                 "would be written outside the folder");
  EXPECT_FALSE(fs::exists(folder / "victim.npy"));
  fs::remove(folder / "out/q.npy");
  ASSERT_EQ(::mkfifo((folder / "out/report.json").c_str(), 0600), 0);
  expect_refused(folder, run_words({"--output-dir", folder / "out"}), "--output-dir",
                 "is no plain file");
  fs::remove(folder / "out/report.json");
  expect_refused(folder,
                 run_words({"--output-dir", folder / "out", "--trace", folder / "out/q.npy"}),
                 "--trace", "--output-dir writes a file of this name, too");
  fs::create_symlink("other.npy", folder / "out/q.npy");  // inside the folder
  EXPECT_EQ(run(run_words({"--output-dir", folder / "out"})).exit, 0);
  EXPECT_TRUE(fs::is_symlink(folder / "out/q.npy"));
  EXPECT_TRUE(fs::is_regular_file(folder / "out/other.npy"));
}

TEST(Paths, OfEveryResultOfARunAreKnown) {
  const TemporaryFolder folder;
  const Words host{
      TESSERA_TOOL,     "run",          "--input-size=48", "--output-size=32", "--density=0.25",
      "--machine=host", "--output-dir", folder / "out"};
  const std::string out = folder / "out";
  for (const Words& words :
       {run_words({"--output-dir", out}),
        run_words({"--output-dir", out, "--groups=2", "--batch-size=8"}), host})
    EXPECT_EQ(run(words).exit, 0);
  for (const auto& entry : fs::directory_iterator(folder / "out"))
    EXPECT_TRUE(tools::is_result_of_a_run(entry.path().filename().string())) << entry.path();
}

TEST(Paths, OfTheRatesOfThisComputerAreInTheirFolder) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "tessera");
  fs::create_symlink(folder / "victim", folder / "tessera/host_rates.json");
  const Outcome outcome = run({"/usr/bin/env", "XDG_CACHE_HOME=" + folder.path().string(),
                               TESSERA_TOOL, "machine", "calibrate"});
  EXPECT_EQ(outcome.exit, 6) << outcome.out;
  EXPECT_THAT(outcome.err, HasSubstr("would be written outside the folder"));
  EXPECT_FALSE(fs::exists(folder / "victim"));
}

TEST(Paths, OfFilesToWriteAreRefusedInABatch) {
  const TemporaryFolder folder;
  const Outcome outcome = run({TESSERA_TOOL, "bench", "--", "--input-size=48", "--output-size=32",
                               "--density=0.25", "--trace", folder / "t.json"});
  EXPECT_EQ(outcome.exit, 1);
  EXPECT_THAT(outcome.out, HasSubstr("--trace: a problem of a batch writes no files"));
}

TEST(Paths, OfACheckpointMayBeThatOfTheRunItContinues) {
  const TemporaryFolder folder;
  const std::string file = folder.write("run.safetensors", "no checkpoint");
  const Outcome outcome = run({TESSERA_TOOL, "train", "--checkpoint", file, "--resume", file});
  EXPECT_EQ(outcome.exit, 3) << "it is read: " << outcome.err;
}

}  // namespace
}  // namespace tessera::test
