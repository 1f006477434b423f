#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tessera/tests/support/process.hpp"
#include "tessera/tests/support/shared_data.hpp"

namespace tessera::test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

const char* const kAlive =
    "alive: 287 295 386 427 428 529 571 666 757 943 945 1031 1097 1098 1177 1184 1190 1194 1200\n";

// Unpacks the network into `folder` and returns the folder of its files.
std::string unpack(const std::filesystem::path& shared, const TemporaryFolder& folder) {
  const auto archive = shared / "data" / "graphchallenge" / "graphchallenge-1024x30.tar.xz";
  const Outcome outcome =
      run({TESSERA_CMAKE, "-E", "tar", "xJf", archive.string()}, {}, folder.path().string());
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  return folder / "graphchallenge-1024x30";
}

// The expected figures come from NumPy, the images from GraphChallenge.
void expect_numpys_layers(const Outcome& outcome) {
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  for (const char* layer : {"    1          330320 ", "    2          153280 ",
                            "   10           21504 ", "   30           19456 "})
    EXPECT_THAT(outcome.out, HasSubstr(layer));
  EXPECT_THAT(outcome.out, HasSubstr(kAlive));
  EXPECT_THAT(outcome.out, HasSubstr("PASS"));
}

// Returns the digits before " cycles,".
std::string cycles_of(const std::string& output) {
  const std::size_t end = output.find(" cycles,");
  const std::size_t begin = output.find_last_not_of("0123456789", end - 1) + 1;
  return output.substr(begin, end - begin);
}

// "1810878" becomes "1,810,878".
std::string with_commas(std::string digits) {
  for (auto at = std::ssize(digits) - 3; at > 0; at -= 3) digits.insert(std::size_t(at), ",");
  return digits;
}

void expect_published_answer(const std::string& network, const std::string& machine,
                             const std::string& type) {
  SCOPED_TRACE(machine + ", " + type);
  const Outcome outcome =
      run({TESSERA_GRAPH_CHALLENGE, network, "--machine", machine, "--data-type", type});
  expect_numpys_layers(outcome);
  EXPECT_THAT(outcome.out, ContainsRegex("[0-9]+ cycles, .* edges/s \\(modelled\\)"));
  EXPECT_THAT(read_file(TESSERA_SOURCE_DIR "/bench/results/graph_challenge.md"),
              HasSubstr("| " + with_commas(cycles_of(outcome.out)) + " |"))
      << "the table of results has another figure";
}

TEST(GraphChallenge, GivesThePublishedImagesOnBothMachinesInFloatAndHalf) {
  TESSERA_NEED_SHARED(shared);
  const TemporaryFolder folder;
  const std::string network = unpack(shared, folder);
  const std::string few = folder.write("few.json", R"({"base": "gc200", "tiles": 64})");
  for (const std::string& machine : {std::string("gc200"), few})
    for (const char* type : {"float", "half"}) expect_published_answer(network, machine, type);
}

TEST(GraphChallenge, GivesThePublishedImagesAsOneProgramThatStaysInMemory) {
  TESSERA_NEED_SHARED(shared);
  const TemporaryFolder folder;
  const std::string network = unpack(shared, folder);
  const std::string few = folder.write("few.json", R"({"base": "gc200", "tiles": 64})");
  for (const auto& [type, images] : {std::pair("half", "600"), std::pair("float", "400")}) {
    const Outcome outcome = run(
        {TESSERA_GRAPH_CHALLENGE, network, "--machine", few, "--data-type", type, "--resident"});
    expect_numpys_layers(outcome);
    EXPECT_THAT(outcome.out, ContainsRegex("resident: " + std::string(images) +
                                           " images at once, [0-9]+ cycles"));
    // Once for the layers alone, and once for the program.
    EXPECT_THAT(outcome.out, ContainsRegex("PASS.*(.|\n)*PASS"));
  }
  EXPECT_EQ(run({TESSERA_GRAPH_CHALLENGE, network, "--machine", "host", "--resident"}).exit, 4);
}

TEST(GraphChallenge, GivesThePublishedImagesOnThisComputerForAnyNumberOfThreads) {
  TESSERA_NEED_SHARED(shared);
  const TemporaryFolder folder;
  const std::string network = unpack(shared, folder);
  for (const char* type : {"float", "half"})
    for (const char* threads : {"1", "2"}) {
      const Outcome outcome = run({TESSERA_GRAPH_CHALLENGE, network, "--machine", "host",
                                   "--data-type", type, "--threads", threads});
      expect_numpys_layers(outcome);
      EXPECT_THAT(outcome.out, ContainsRegex("end to end: .* useful GFLOP/s, .* \\(measured, "));
    }
}

// A false answer and a network without its last layer must fail.
TEST(GraphChallenge, RefusesAnotherAnswerAndAMissingLayer) {
  TESSERA_NEED_SHARED(shared);
  namespace fs = std::filesystem;
  const TemporaryFolder folder;
  const fs::path network = unpack(shared, folder);
  const fs::path answer = network / "neuron1024-l120-categories_subset.mtx";
  const std::string right = read_file(answer.string());
  const std::size_t last = right.rfind("1200 1");
  ASSERT_NE(last, std::string::npos);
  folder.write(fs::relative(answer, folder.path()).string(),
               std::string(right).replace(last, 6, "1199 1"));
  EXPECT_EQ(run({TESSERA_GRAPH_CHALLENGE, network.string()}).exit, 1);
  folder.write(fs::relative(answer, folder.path()).string(), right);
  fs::remove(network / "n1024-l30.mtx");
  const Outcome missing = run({TESSERA_GRAPH_CHALLENGE, network.string()});
  EXPECT_EQ(missing.exit, 3);
  EXPECT_THAT(missing.err, HasSubstr("n1024-l30.mtx"));
}

}  // namespace
}  // namespace tessera::test
