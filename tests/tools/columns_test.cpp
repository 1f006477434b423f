#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <regex>
#include <sstream>

#include "tessera/io/write.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/support/process.hpp"

namespace tessera::test {
namespace {

constexpr std::size_t kColumns = 100;

// The lines that are wider than a page; a character takes one column, however many bytes it has.
std::string too_wide(const std::string& text) {
  std::istringstream lines(text);
  std::string found;
  for (std::string line; std::getline(lines, line);) {
    const auto columns = std::count_if(line.begin(), line.end(), [](char c) {
      return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
    });
    if (std::size_t(columns) > kColumns) found += line + "\n";
  }
  return found;
}

const std::vector<std::string> kCommands{"plan",    "run",    "bench",     "convert", "compare",
                                         "report",  "sweep",  "crossover", "advise",  "network",
                                         "machine", "doctor", "train",     "matmul"};

std::string help_of(std::vector<std::string> words) {
  words.push_back("--help-all");
  const Outcome outcome = run(words);
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  return outcome.out;
}

TEST(Help, FitsAPageAndShowsAnExampleForEveryCommand) {
  std::vector<std::vector<std::string>> all{{TESSERA_SPARSE_FC_LAYER}, {TESSERA_TOOL}};
  for (const std::string& command : kCommands) all.push_back({TESSERA_TOOL, command});
  for (const auto& words : all) {
    const std::string help = help_of(words);
    EXPECT_EQ(too_wide(help), "") << words.back();
    EXPECT_TRUE(std::regex_search(help, std::regex("Examples?: (tessera|sparse_fc_layer) ")))
        << words.back();
  }
}

TEST(Help, NamesEveryCommandThatIsLookedAtHere) {
  const std::string help = help_of({TESSERA_TOOL});
  const std::regex name("\\n  ([a-z]+) +[A-Z]");
  std::vector<std::string> named;
  const std::string commands = help.substr(help.find("\nAsk:"));
  for (auto it = std::sregex_iterator(commands.begin(), commands.end(), name);
       it != std::sregex_iterator(); ++it)
    named.push_back((*it)[1]);
  EXPECT_THAT(named, testing::UnorderedElementsAreArray(kCommands));
}

TEST(Output, OfEveryCommandFitsAPage) {
  const TemporaryFolder folder;
  const std::string layer = "--input-size=2048 --output-size=1024 --density=0.05 --batch-size=256";
  const std::string quick = "--input-size=256 --output-size=256 --batch-size=16";
  io::write_smtx_file(folder / "w.smtx", sparse::random_pattern(64, 64, {1, 1}, 0.2, 3));
  std::ofstream(folder / "batch") << quick << " --density=0.1\n";
  const std::string script = "cd \"$2\" && PATH=\"$(dirname \"$0\"):$PATH\" && ";
  for (const std::string& command : std::vector<std::string>{
           "sparse_fc_layer " + layer + " --report-total-cycle-counts --profile --report-plan",
           "sparse_fc_layer " + layer +
               R"( --matmul-options '{"partitioner.forceBucketSpills":"true"}')",
           "tessera plan " + layer + " --explain", "tessera run " + layer + " --block-size 16",
           "tessera bench --batch batch", "tessera advise w.smtx",
           "tessera advise w.smtx --machine mk1 --machine host", "tessera convert w.smtx w.mtx",
           "tessera sweep --over tiles --values 64,1472 " + quick + " --density 0.1",
           "tessera sweep --over memory --values 2048,638976 " + quick + " --density 0.1",
           "tessera crossover " + quick + " --single-phase fwd", "tessera machine list",
           "tessera machine show bow", "tessera doctor",
           "tessera run " + quick + " --density=0.1 --json > a; tessera run " + quick +
               " --density=0.3 --json > b; tessera compare a b --threshold 1000000"}) {
    const Outcome outcome =
        run({"/bin/sh", "-c", script + command, TESSERA_TOOL, "", folder / "."});
    EXPECT_EQ(outcome.exit, 0) << command << "\n" << outcome.err;
    EXPECT_FALSE(outcome.out.empty()) << command;
    // A line that runs a problem again is one line, however long, so that it can be copied.
    const std::string repro = outcome.out.find(" : sparse_fc_layer") == std::string::npos
                                  ? ""
                                  : outcome.out.substr(0, outcome.out.find('\n') + 1);
    EXPECT_EQ(too_wide(outcome.out), repro) << command;
  }
}

TEST(Help, IsInGroupsAndHasNoNotesOfItsParser) {
  for (const std::string& command : kCommands) {
    const std::string help = help_of({TESSERA_TOOL, command});
    for (const char* noise : {"Excludes", "Needs", "REQUIRED", "2147483647", "INT:", "FLOAT:"})
      EXPECT_EQ(help.find(noise), help.npos) << command << " " << noise;
  }
  const std::string help = help_of({TESSERA_TOOL, "plan"});
  std::size_t at = 0;
  for (const char* line :
       {"\nOptions:\n", "\nLayer:\n", "  --density FLOAT ", "(0..1)", "\nMachine:\n",
        "  --machine TEXT=gc200 ", "\nPlanner:\n", "  --plan-constraints JSON", "\nOutput:\n"}) {
    at = help.find(line, at);
    EXPECT_NE(at, help.npos) << line << " is not behind the lines before it";
  }
}

TEST(TooWide, FindsALineOfOneColumnTooMany) {
  EXPECT_EQ(too_wide(std::string(100, 'x') + "\n"), "");
  EXPECT_EQ(too_wide(std::string(101, 'x') + "\n"), std::string(101, 'x') + "\n");
  std::string sixty;
  for (int i = 0; i < 60; ++i) sixty += "\u00d7";
  EXPECT_EQ(too_wide(sixty), "") << "two bytes each, one column each";
}

}  // namespace
}  // namespace tessera::test
