// Small files that ask for much, and the exit codes of files that are too large.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/tests/support/message_of.hpp"
#include "tessera/tests/support/process.hpp"
#include "tessera/tools/commands/batch_file.hpp"

namespace tessera::test {
namespace {

using testing::HasSubstr;

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

// Writes files that name each other `times` times, seven levels deep, and returns the first.
std::string nested(const TemporaryFolder& folder, const std::string& link,
                   const std::string& innermost, int times) {
  for (int level = 1; level < 7; ++level)
    folder.write("f" + std::to_string(level),
                 repeated(link + (link == "@" ? folder / "f" : std::string("f")) +
                              std::to_string(level + 1) + "\n",
                          times));
  folder.write("f7", repeated(innermost, times));
  return folder / "f1";
}

TEST(Limits, OfWordsEndOptionFilesThatNameEachOther) {
  const TemporaryFolder folder;
  for (const char* innermost : {"-q ", "# no word\n"}) {
    const Outcome outcome = run({TESSERA_TOOL, "run", "@" + nested(folder, "@", innermost, 60)});
    EXPECT_EQ(outcome.exit, 3);
    EXPECT_THAT(outcome.err, HasSubstr("a command line may have at most 65536 words"));
  }
  const std::string long_file = folder.write("long", repeated("-q ", 70000));
  EXPECT_EQ(run({TESSERA_TOOL, "run", "@" + long_file}).exit, 3);
}

TEST(Limits, OfProblemsEndBatchesThatIncludeEachOther) {
  const TemporaryFolder folder;
  for (const char* innermost : {"--input-size 4 --output-size 4 --density 1\n", ""}) {
    const std::string first = nested(folder, "--batch ", innermost, 60);
    EXPECT_THAT(message_of([&] { tools::read_batch(first); }),
                HasSubstr("problem files may have at most 1048576 lines and 2097152 words"));
  }
  const std::string defaults = folder.write("defaults", "--reset " + repeated("--seed=1 ", 5000) +
                                                            "\n" + repeated("--density 1\n", 5000));
  EXPECT_THAT(message_of([&] { tools::read_batch(defaults); }), HasSubstr("2097152 words"));
}

TEST(Limits, OfJsonAreFaultsOfTheFile) {
  const TemporaryFolder folder;
  const std::string file = folder.write("m.json", "[" + repeated("0,", 1 << 20) + "0]");
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{TESSERA_TOOL, "machine", "show", file},
                                             {TESSERA_TOOL, "plan", "--machine", file,
                                              "--input-size=8", "--output-size=8", "--density=0.5"},
                                             {TESSERA_TOOL, "network", file}}) {
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.exit, 3) << words[1];
    EXPECT_THAT(outcome.err, HasSubstr("more than 1048576 values; this is the limit"));
  }
}

TEST(Limits, OfGroupsAreCheckedBeforeTheirPatternsAreDrawn) {
  const Outcome outcome = run({TESSERA_TOOL, "run", "--groups=1048576", "--input-size=4096",
                               "--output-size=4096", "--density=0.5"});
  EXPECT_EQ(outcome.exit, 2);
  EXPECT_THAT(outcome.err,
              HasSubstr("--groups is 1048576; it must be in 1..1472, the tiles of gc200"));
}

}  // namespace
}  // namespace tessera::test
