// The forms that commands print figures in, and the two tiers of help.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tessera/base/file.hpp"
#include "tessera/tests/support/process.hpp"
#include "tessera/tests/support/temporary_folder.hpp"
#include "tessera/tests/tools/json_schema.hpp"

namespace tessera::test {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

using Words = std::vector<std::string>;

Outcome figures_of(Words words, const std::string& form) {
  words.insert(words.begin(), TESSERA_TOOL);
  words.push_back(form);
  return run(words);
}

// A command line for each study.
std::vector<Words> studies(const TemporaryFolder& folder) {
  const std::string mask = folder.write("w.txt", "4 4\n1 0 0 1\n0 1 0 0\n0 0 1 0\n1 0 0 0\n");
  const std::string net = folder.write(
      "net.json", R"({"batch": 8, "layers": [{"inputs": 16, "outputs": 8, "density": 0.5}]})");
  const auto layer = [](const char* command, Words more) {
    Words words{command,          "--input-size=48",    "--output-size=32",
                "--batch-size=8", "--single-phase=fwd", "--tiles-per-ipu=8"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  return {{"advise", mask, "--batch-size=8"},
          layer("crossover", {"--block-size=4"}),
          {"sweep", "--over=tiles=4,8", "--input-size=48", "--output-size=32", "--density=0.1",
           "--single-phase=fwd"},
          {"sweep", "--devices=1,2", "--machine=bow", "--input-size=256", "--output-size=256",
           "--density=0.1", "--batch-size=64"},
          {"network", net, "--tiles-per-ipu=8"},
          {"network", net, "--machine=host"},
          {"machine", "list"}};
}

TEST(StudyForms, ObeyTheSchemaAsJson) {
  const TemporaryFolder folder;
  const auto schema =
      nlohmann::json::parse(tessera::read_file(TESSERA_SOURCE_DIR "/docs/study.schema.json"));
  for (const Words& study : studies(folder)) {
    const Outcome outcome = figures_of(study, "--json");
    ASSERT_EQ(outcome.exit, 0) << study[0] << outcome.err;
    EXPECT_EQ(schema_breach(schema, nlohmann::json::parse(outcome.out)), "") << study[0];
  }
}

TEST(StudyForms, AreCsvWithAHeadingToo) {
  const TemporaryFolder folder;
  const char* const headings[] = {"layer,size,density,", "block,crossover_density,",
                                  "tiles,cycles,",       "scaling,devices,",
                                  "layer,work,",         "place,layer,",
                                  "machine,tiles,"};
  std::size_t at = 0;
  for (const Words& study : studies(folder)) {
    const Outcome outcome = figures_of(study, "--csv");
    EXPECT_EQ(outcome.exit, 0) << study[0] << outcome.err;
    EXPECT_THAT(outcome.out, StartsWith(headings[at++])) << study[0];
  }
  for (const Words& layer :
       {Words{"plan", "--input-size=48", "--output-size=32", "--density=0.2"},
        Words{"plan", "--input-size=48", "--output-size=32", "--density=0.2", "--static"}})
    EXPECT_THAT(figures_of(layer, "--csv").out,
                StartsWith("pass,term,cycles,temporary_bytes\nFwd,"));
  EXPECT_THAT(
      figures_of({"plan", "--input-size=48", "--output-size=32", "--density=0.2", "--machine=host"},
                 "--csv")
          .out,
      StartsWith("form,pass,seconds\n1x1,Fwd,"));
}

TEST(StudyForms, OfAPlanOfAPodAreCsvThatAddsUpToItsTime) {
  const Words plan = {
      "plan",          "--devices=16",   "--machine=bow", "--input-size=4096", "--output-size=4096",
      "--density=0.1", "--batch-size=64"};
  std::istringstream rows(figures_of(plan, "--csv").out);
  std::string line;
  std::getline(rows, line);
  EXPECT_EQ(line, "pass,step,operand,axis,runs,seconds,link_bytes,cycles");
  double seconds = 0;
  while (std::getline(rows, line)) {
    std::istringstream cells(line);
    std::string cell;
    for (int i = 0; i < 6; ++i) std::getline(cells, cell, ',');
    seconds += std::stod(cell);
  }
  const auto planned = nlohmann::json::parse(figures_of(plan, "--json").out);
  EXPECT_NEAR(seconds, planned["cost"]["seconds"].get<double>(), 1e-12);
}

TEST(StudyForms, NameTheSweptFigureInEveryPoint) {
  const TemporaryFolder folder;
  const auto sweep = nlohmann::json::parse(figures_of(studies(folder)[2], "--json").out);
  ASSERT_EQ(sweep["points"].size(), 2u);
  EXPECT_EQ(sweep["points"][0]["tiles"], 4);
  EXPECT_EQ(sweep["points"][1]["tiles"], 8);
}

TEST(HelpTiers, ShowTheOptionsThatPeopleUseAndAllIfAsked) {
  const std::string usual = run({TESSERA_TOOL, "run", "--help"}).out;
  const std::string all = run({TESSERA_TOOL, "run", "--help-all"}).out;
  EXPECT_THAT(usual, HasSubstr("--density"));
  EXPECT_THAT(usual, Not(HasSubstr("--weighted-area-begin")));
  EXPECT_THAT(usual, HasSubstr("--help-all shows all "));
  for (const char* option : {"--density", "--weighted-area-begin", "--device-type"})
    EXPECT_THAT(all, HasSubstr(option));
  const std::string program = run({TESSERA_SPARSE_FC_LAYER, "--help"}).out;
  EXPECT_THAT(program, Not(HasSubstr("--weighted-area-begin")));
}

TEST(HelpTiers, ListTheCommandsInFourGroups) {
  const std::string help = run({TESSERA_TOOL, "--help"}).out;
  std::size_t last = 0;
  for (const char* part :
       {"\nAsk:\n", "  advise ", "  sweep ", "\nDo:\n", "  run ", "  matmul ", "\nFiles:\n",
        "  plan ", "  report ", "\nThis computer:\n", "  bench "}) {
    const std::size_t at = help.find(part, last);
    ASSERT_NE(at, help.npos) << part << "\n" << help;
    last = at;
  }
}

TEST(HostDefaults, AreThoseOfAUserOfTheProcessor) {
  const TemporaryFolder folder;
  const std::string mask = folder.write("w.txt", "4 4\n1 0 0 1\n0 1 0 0\n0 0 1 0\n1 0 0 0\n");
  const auto advice = [&](const char* machine) {
    return nlohmann::json::parse(
        figures_of({"advise", mask, std::string("--machine=") + machine}, "--json").out);
  };
  EXPECT_EQ(advice("host")["data_type"], "float");
  EXPECT_EQ(advice("host")["passes"], nlohmann::json({"Fwd"}));
  EXPECT_EQ(advice("gc200")["data_type"], "half");
  EXPECT_EQ(advice("gc200")["passes"].size(), 3u);
  const Outcome outcome = figures_of(
      {"run", "--input-size=48", "--output-size=32", "--density=0.2", "--machine=host", "--quiet"},
      "--json");
  const auto report = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(report["host"]["data_type"], "float");
  EXPECT_EQ(report["configuration"]["data-type"], "float");
  EXPECT_FALSE(report["tool"]["commit"].get<std::string>().empty());
}

}  // namespace
}  // namespace tessera::test
