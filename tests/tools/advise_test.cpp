#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "tessera/tests/io/array_files.hpp"
#include "tessera/tests/support/process.hpp"

namespace tessera::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

Outcome advise(std::vector<std::string> words) {
  words.insert(words.begin(), {TESSERA_TOOL, "advise"});
  words.insert(words.end(), {"--batch-size=16", "--single-phase=fwd"});
  return run(words);
}

// Returns half-precision zeros with a one in every `step`-th place.
std::string halves(std::int64_t count, std::int64_t step) {
  std::string bytes;
  for (std::int64_t i = 0; i < count; ++i)
    bytes += i % step == 0 ? std::string("\x00\x3c", 2) : std::string(2, '\0');
  return bytes;
}

// A file with two layers, one matrix without rows, a bias and a matrix of whole numbers.
std::string write_model(const TemporaryFolder& folder) {
  const std::string header =
      R"({"fc1":{"dtype":"F16","shape":[96,64],"data_offsets":[0,12288]},)"
      R"("none":{"dtype":"F16","shape":[0,64],"data_offsets":[12288,12288]},)"
      R"("bias":{"dtype":"F16","shape":[8],"data_offsets":[12288,12304]},)"
      R"("ids":{"dtype":"I16","shape":[2,2],"data_offsets":[12304,12312]},)"
      R"("fc2":{"dtype":"F16","shape":[32,32],"data_offsets":[12312,14360]}})";
  return folder.write(
      "model.safetensors",
      io::test::safetensors(header, halves(96 * 64, 20) + halves(12, 1) + halves(32 * 32, 1)));
}

TEST(AdviseCommand, HasOneEntryForEveryMatrixOfAFile) {
  const TemporaryFolder folder;
  const Outcome outcome = advise({write_model(folder), "--tiles-per-ipu=16", "--json"});
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  const json advice = json::parse(outcome.out);
  EXPECT_EQ(advice["left_out"], json({"bias", "ids"}));
  const json& layers = advice["machines"][0]["layers"];
  ASSERT_EQ(layers.size(), 3u);
  EXPECT_EQ(layers[0]["name"], "fc1");
  EXPECT_EQ(layers[0]["outputs"], 96);
  EXPECT_EQ(layers[0]["non_zeros"], 308);
  EXPECT_THAT(layers[1]["fault"].get<std::string>(), HasSubstr("0 x 64"));
  EXPECT_EQ(layers[2]["best"], "dense") << "a full matrix";
  EXPECT_EQ(layers[2]["sparse_pays"], false);
  EXPECT_EQ(layers[2]["pays_up_to_density"].is_number(), true);
}

TEST(AdviseCommand, ShowsASingleMatrixInAllFormsOnEveryMachine) {
  const TemporaryFolder folder;
  const std::string model = write_model(folder);
  const std::vector<std::string> words{model, "--tensor=fc1", "--machine=gc200", "--machine=host"};
  const Outcome outcome = advise(words);
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  std::vector<std::string> as_json = words;
  as_json.push_back("--json");
  const json advice = json::parse(advise(as_json).out);
  ASSERT_EQ(advice["machines"].size(), 2u);
  for (const json& machine : advice["machines"]) ASSERT_EQ(machine["layers"].size(), 1u);
  const json& layer = advice["machines"][0]["layers"][0];
  ASSERT_EQ(layer["forms"].size(), 5u);
  std::int64_t least = layer["forms"][0]["cycles"];
  std::string best = "1x1";
  for (const json& form : layer["forms"]) {
    const std::string name = form["name"];
    EXPECT_THAT(outcome.out,
                testing::ContainsRegex(
                    "\n" + name + " .* " +
                    fmt::format("{}", fmt::group_digits(form["cycles"].get<std::int64_t>())) +
                    " +[0-9]+\n"));
    if (form["cycles"] < least) least = form["cycles"], best = name;
  }
  if (layer["better"] != "about equal") {
    EXPECT_EQ(layer["best"], best);
  }
  EXPECT_THAT(outcome.out, testing::ContainsRegex("rows +96 "));
  EXPECT_THAT(advise({model, "--tensor=bias"}).err, HasSubstr("are fc1, none, fc2"));
  EXPECT_EQ(advise({model, "--tensor=bias"}).exit, 3);
}

TEST(AdviseCommand, CountsRowsColumnsAndBlocksOfASingleMatrix) {
  const TemporaryFolder folder;
  // Rows of 2, 0, 0, 2 and columns of 2, 1, 0, 1; one block of 4 x 4.
  std::ofstream(folder / "m.smtx") << "4, 4, 4\n0 2 2 2 4\n0 1 0 3\n";
  const Outcome outcome = advise({folder / "m.smtx", "--tiles-per-ipu=4"});
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_THAT(outcome.out, testing::ContainsRegex("4x4 +0.2500 "));
  EXPECT_THAT(outcome.out, testing::ContainsRegex("rows +4 +0 +1.00 +2 +2.00 +1.00\n"));
  EXPECT_THAT(outcome.out, testing::ContainsRegex("columns +4 +0 +1.00 +2 +2.00 +0.71\n"));
  EXPECT_THAT(outcome.out, testing::ContainsRegex("4x4 +1 +1.0000 +25.0 +[0-9,]+ "));
}

TEST(AdviseCommand, ForecastsSecondsOnThisComputerBesideTheOtherMachines) {
  const TemporaryFolder folder;
  const Outcome outcome = advise({"--machine", "mk1", "--machine", "host", write_model(folder)});
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\nmk1: modelled cycles\n"));
  EXPECT_THAT(outcome.out, HasSubstr("\nhost: milliseconds, forecast\n"));
  const Outcome as_json = advise({write_model(folder), "--machine=host", "--json"});
  const json advice = json::parse(as_json.out);
  EXPECT_EQ(advice["machines"][0]["how"], "forecast");
  for (const json& form : advice["machines"][0]["layers"][0]["forms"]) {
    EXPECT_GT(form["seconds"], 0);
    EXPECT_LT(form["seconds"], 1);
  }
}

TEST(AdviseCommand, EndsInOneVerdict) {
  const TemporaryFolder folder;
  const std::string out = advise({write_model(folder), "--tiles-per-ipu=16"}).out;
  const std::size_t verdict = out.find("\nverdict    gc200: ");
  ASSERT_NE(verdict, std::string::npos) << out;
  EXPECT_EQ(out.find("\n\n", verdict), std::string::npos);
  EXPECT_THAT(out.substr(verdict), HasSubstr("1 cannot be planned"));
  EXPECT_THAT(out.substr(verdict), HasSubstr("half sums"));
}

TEST(AdviseCommand, SaysWhyALayerHasNoPlanAndEndsWithFourIfNoneHas) {
  const TemporaryFolder folder;
  const Outcome outcome = advise({write_model(folder), "--tiles-per-ipu=16",
                                  R"(--matmul-options={"availableMemoryProportion": 0.000001})"});
  EXPECT_EQ(outcome.exit, 4);
  EXPECT_THAT(outcome.out, HasSubstr("  1x1: no plan for g1 x96 y64"));
  EXPECT_THAT(outcome.out, HasSubstr("  dense: no dense plan for Fwd: a tile needs "));
}

TEST(AdviseCommand, RefusesWhatDescribesNoAdvice) {
  const TemporaryFolder folder;
  const std::string model = write_model(folder);
  EXPECT_EQ(advise({model, "--block-size=4"}).exit, 2);
  EXPECT_EQ(advise({model, "--machine=host", "--plan-constraints={}"}).exit, 2);
  EXPECT_EQ(advise({model, R"(--plan-constraints={"useDense": true})"}).exit, 2);
  EXPECT_EQ(advise({model, "--machine=abacus"}).exit, 2);
  EXPECT_EQ(advise({folder / "none.mtx"}).exit, 3);
  EXPECT_EQ(advise({folder / "none.safetensors"}).exit, 3);
}

}  // namespace
}  // namespace tessera::test
