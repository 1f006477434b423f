// tessera train: lines, figures, checkpoints and refusals, on a data set of pictures of 4 x 5
// pixels.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/file.hpp"
#include "tessera/tests/support/process.hpp"
#include "tessera/tests/support/temporary_folder.hpp"
#include "tessera/tests/train/training_case.hpp"
#include "tessera/tools/exit_code.hpp"
#include "tessera/tools/report_page.hpp"

namespace tessera::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

std::string big_endian(std::uint32_t n) {
  return {char(n >> 24), char(n >> 16 & 0xff), char(n >> 8 & 0xff), char(n & 0xff)};
}

void write_part(const std::string& start, const train::LabelledImages& images) {
  const auto count = std::uint32_t(images.count());
  tessera::write_file(start + "-images-idx3-ubyte",
                      big_endian(0x803) + big_endian(count) + big_endian(4) + big_endian(5) +
                          std::string(images.pixels.begin(), images.pixels.end()));
  tessera::write_file(start + "-labels-idx1-ubyte",
                      big_endian(0x801) + big_endian(count) +
                          std::string(images.labels.begin(), images.labels.end()));
}

class TrainCommand : public testing::Test {
 protected:
  void SetUp() override {
    const train::DataSet data = small_data();
    write_part(folder_ / "train", data.training);
    write_part(folder_ / "t10k", data.test);
  }

  // Runs the command with these words; options among them replace those of a small network.
  Outcome train(const std::vector<std::string>& words) {
    std::vector<std::string> command = {TESSERA_TOOL, "train"};
    for (const auto& [option, value] :
         std::vector<std::pair<std::string, std::string>>{{"--layers", "20,30,10"},
                                                          {"--data", folder_ / ""},
                                                          {"--epochs", "4"},
                                                          {"--every", "3"},
                                                          {"--batch-size", "16"},
                                                          {"--density", "0.3"},
                                                          {"--threads", "1"}})
      if (std::find(words.begin(), words.end(), option) == words.end())
        command.insert(command.end(), {option, value});
    command.insert(command.end(), words.begin(), words.end());
    return run(command);
  }

  TemporaryFolder folder_;
};

// Everything but the seconds, which are measured.
json without_seconds(const std::string& text) {
  json figures = json::parse(text);
  json& report = figures["sparse"];
  report.erase("seconds");
  for (const char* list : {"epochs", "rewires"})
    for (json& line : report[list]) line.erase("seconds");
  return figures;
}

TEST_F(TrainCommand, PrintsALineForEachEpoch) {
  const Outcome outcome = train({});
  EXPECT_EQ(outcome.exit, tools::kOk) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("layer 1: 30 x 20"), HasSubstr("epoch   1  loss "),
                                 HasSubstr("epoch   4  loss ")));
  EXPECT_EQ(outcome.err, "");
}

TEST_F(TrainCommand, SaysOnceThatSidesArePadded) {
  const std::string out = train({"--block", "8"}).out;
  const std::size_t at = out.find("are padded");
  EXPECT_NE(at, std::string::npos);
  EXPECT_EQ(out.find("are padded", at + 1), std::string::npos);
}

TEST_F(TrainCommand, ResumesWithTheFiguresOfAnUnbrokenRun) {
  const std::string file = folder_ / "run.safetensors";
  const Outcome whole = train({"--json", "--checkpoint", file});
  EXPECT_EQ(whole.exit, tools::kOk) << whole.err;
  const Outcome again = train({"--json", "--resume", file});
  EXPECT_EQ(without_seconds(again.out), without_seconds(whole.out));
  EXPECT_EQ(json::parse(whole.out)["status"], "complete");
  EXPECT_EQ(json::parse(whole.out)["sparse"]["epochs"].size(), 4U);
}

TEST_F(TrainCommand, RefusesTheCheckpointOfAnotherRun) {
  const std::string file = folder_ / "run.safetensors";
  train({"--checkpoint", file});
  const Outcome other = train({"--resume", file, "--seed", "2"});
  EXPECT_EQ(other.exit, tools::kBadInput);
  EXPECT_THAT(other.err, AllOf(HasSubstr("seed 1"), HasSubstr("seed 2")));
}

TEST_F(TrainCommand, PrintsCsvOfBothRuns) {
  const Outcome outcome = train({"--csv", "--beside-dense"});
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("run,epoch,loss"), HasSubstr("\nsparse,4,"),
                                 HasSubstr("\ndense,4,")));
}

TEST_F(TrainCommand, WritesAPageWithItsFigures) {
  if (!tools::can_make_pages()) GTEST_SKIP() << "built without the chart library";
  const std::string page = folder_ / "run.html";
  EXPECT_EQ(train({"--html", page}).exit, tools::kOk);
  EXPECT_THAT(tessera::read_file(page), HasSubstr("\"study\":\"train\""));
}

TEST_F(TrainCommand, RefusesWhatCannotBe) {
  const auto refused = [&](const std::vector<std::string>& words, int exit,
                           const std::string& text) {
    const Outcome outcome = train(words);
    EXPECT_EQ(outcome.exit, exit) << text;
    EXPECT_THAT(outcome.err, HasSubstr(text));
    EXPECT_EQ(outcome.out, "");
  };
  refused({"--data", folder_ / "nothing"}, tools::kBadInput, "dataset-fashion-mnist");
  refused({"--factor", "3"}, tools::kUsage, "--method sampled only");
  refused({"--method", "dense"}, tools::kUsage, "stores all weights");
  refused({"--layers", "21,30,10"}, tools::kUsage, "images have 20 pixels");
  refused({"--density", "0.0001"}, tools::kUsage, "has no block");
  refused({"--csv", "--json"}, tools::kUsage, "excludes");
  refused({"--resume", folder_ / "nothing"}, tools::kBadInput, "nothing");
}

}  // namespace
}  // namespace tessera::test
