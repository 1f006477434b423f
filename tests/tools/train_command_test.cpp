// tessera train: lines, figures, checkpoints and refusals, on a data set of pictures of 4 x 5
// pixels.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/file.hpp"
#include "tessera/io/write.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/support/process.hpp"
#include "tessera/tests/support/temporary_folder.hpp"
#include "tessera/tests/tools/training_files.hpp"
#include "tessera/tests/train/training_case.hpp"
#include "tessera/tools/options/exit_code.hpp"
#include "tessera/tools/page/report_page.hpp"
#include "tessera/train/pattern_update.hpp"

namespace tessera::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

class TrainCommand : public testing::Test {
 protected:
  void SetUp() override {
    const train::DataSet data = small_data();
    write_part(folder_ / "train", data.training);
    write_part(folder_ / "t10k", data.test);
  }

  static bool has(const std::vector<std::string>& words, const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  }

  // Returns the command with these words; options among them replace those of a small network.
  std::vector<std::string> command_with(const std::vector<std::string>& words) {
    std::vector<std::string> command = {TESSERA_TOOL, "train"};
    for (const auto& [option, value] :
         std::vector<std::pair<std::string, std::string>>{{"--layers", "20,30,10"},
                                                          {"--data", folder_ / ""},
                                                          {"--epochs", "4"},
                                                          {"--every", "3"},
                                                          {"--batch-size", "16"},
                                                          {"--density", "0.3"},
                                                          {"--threads", "1"}})
      if (!has(words, option) && !(option == "--every" && has(words, "static")))
        command.insert(command.end(), {option, value});
    command.insert(command.end(), words.begin(), words.end());
    return command;
  }

  Outcome train(const std::vector<std::string>& words) { return run(command_with(words)); }

  // Runs the command and sends it Ctrl-C so many seconds after this file exists.
  Outcome interrupt(const std::vector<std::string>& words, const std::string& file,
                    double seconds = 0) {
    const std::string script =
        "file=$1; pause=$2; shift 2; \"$@\" & "
        "while [ ! -s \"$file\" ] && kill -0 $!; do sleep 0.01; done; "
        "sleep $pause; kill -INT $!; wait $!";
    std::vector<std::string> shell = {"bash", "-mc", script, "bash", file, std::to_string(seconds)};
    const std::vector<std::string> command = command_with(words);
    shell.insert(shell.end(), command.begin(), command.end());
    return run(shell);
  }

  // Runs the command with a file of a network in place of the options of a small one.
  Outcome train_file(const std::string& text, const std::vector<std::string>& words = {}) {
    std::vector<std::string> command = {TESSERA_TOOL, "train", folder_.write("net.json", text)};
    command.insert(command.end(), {"--data", folder_ / "", "--epochs", "2", "--threads", "1"});
    if (!has(words, "static")) command.insert(command.end(), {"--every", "3"});
    command.insert(command.end(), words.begin(), words.end());
    return run(command);
  }

  TemporaryFolder folder_;
};

constexpr const char* kFile = R"({
  "batch": 16, "data_type": "float",
  "layers": [
    {"inputs": 20, "outputs": 30, "density": 0.3, "activation": "relu"},
    {"inputs": 30, "outputs": 10, "density": 1}],
  "loss": "softmax-cross-entropy",
  "optimiser": {"rule": "torch-sgd", "rate": 0.1, "weight_decay": 0.0002}})";

TEST_F(TrainCommand, PrintsALineForEachEpoch) {
  const Outcome outcome = train({"--min-per-neuron", "1"});
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

// The checkpoint is written after the first of eight epochs of 1,000 steps. Where a disk is slow a
// program with short epochs does little but write, and Ctrl-C waits for the end of that.
TEST_F(TrainCommand, LeavesCheckpointAndReportAtCtrlCAndGoesOnInTheMiddleOfAnEpoch) {
  constexpr std::int64_t kSteps = 1000;  // of an epoch
  write_part(folder_ / "train", three_classes(2 * kSteps, 1));
  const std::vector<std::string> words = {"--json", "--epochs", "8", "--batch-size", "2"};
  const auto with = [&](const std::string& option, const std::string& file) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {option, file});
    return all;
  };
  const std::string file = folder_ / "run.safetensors";
  std::int64_t steps = 0;
  for (int attempt = 0; steps % kSteps == 0 && attempt < 60; ++attempt) {
    std::filesystem::remove(file);
    const Outcome broken = interrupt(with("--checkpoint", file), file, 0.003 * (attempt % 20));
    ASSERT_EQ(broken.exit, 130) << broken.err;
    EXPECT_THAT(broken.err, HasSubstr("--resume with the same options goes on"));
    const json report = json::parse(broken.out);
    EXPECT_EQ(report["status"], "partial");
    steps = report["sparse"]["steps"];
    EXPECT_EQ(std::ssize(report["sparse"]["epochs"]), steps / kSteps);
  }
  ASSERT_NE(steps % kSteps, 0) << "every attempt ended between two epochs";
  const Outcome whole = train(words), resumed = train(with("--resume", file));
  EXPECT_EQ(resumed.exit, tools::kOk) << resumed.err;
  EXPECT_EQ(without_seconds(resumed.out), without_seconds(whole.out));
}

TEST_F(TrainCommand, RunsOnAModelledMachineWithTheSameBitsForAnyThreads) {
  const std::vector<std::string> words = {"--json", "--machine", "gc200", "--epochs", "2"};
  std::vector<std::string> three = words;
  three.insert(three.end(), {"--threads", "3"});
  const Outcome one = train(words);
  EXPECT_EQ(one.exit, tools::kOk) << one.err;
  EXPECT_EQ(without_seconds(one.out), without_seconds(train(three).out));
  const json here = json::parse(train({"--json", "--epochs", "2"}).out),
             there = json::parse(one.out);
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_NEAR(there["sparse"]["epochs"][i]["loss"], here["sparse"]["epochs"][i]["loss"], 1e-2);
  const json& step = there["step_on_machine"];
  std::vector<std::string> passes;
  std::int64_t cycles = 0;
  for (const json& pass : step["passes"]) {
    passes.push_back(pass["pass"]);
    cycles += std::int64_t(pass["cycles"]);
    EXPECT_GT(pass["cycles"], 0);
    EXPECT_GT(pass["dense_cycles"], 0);
  }
  EXPECT_THAT(passes, testing::ElementsAre("Fwd", "GradW", "Fwd", "GradA", "GradW"));
  for (const json& layer : step["optimisers"]) cycles += std::int64_t(layer["cycles"]);
  EXPECT_EQ(step["optimisers"].size(), 2U);
  EXPECT_EQ(step["cycles"], cycles);
  EXPECT_GT(step["pattern_bytes"], 0);
  const json& rewire = step["rewire"];
  EXPECT_GT(rewire["rewires"], 0);
  for (const std::string link : {"upload", "download"}) {
    const double bytes = rewire[link + "_bytes"];
    EXPECT_GT(bytes, 0);
    EXPECT_DOUBLE_EQ(rewire[link + "_seconds"], 1e-5 + bytes / 20e9);
  }
  for (const char* cycles_of : {"dense_gradient_cycles", "selection_cycles"})
    EXPECT_GT(rewire[cycles_of], 0) << "RigL searches on the machine";
  double seconds = 0;
  for (const char* part : {"upload_seconds", "download_seconds", "host_seconds", "machine_seconds"})
    seconds += double(rewire[part]);
  EXPECT_EQ(rewire["steps_for_5_percent"],
            train::steps_for_share(seconds, step["seconds"], train::kShareOfRewires));
  EXPECT_EQ(here.count("step_on_machine"), 0U);
}

TEST_F(TrainCommand, TrainsInHalfOnAMachine) {
  const std::vector<std::string> words = {"--json", "--machine", "gc200", "--epochs", "2"};
  std::vector<std::string> half = words;
  half.insert(half.end(), {"--data-type", "half"});
  const json wide = json::parse(train(words).out), narrow = json::parse(train(half).out);
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_NEAR(narrow["sparse"]["epochs"][i]["loss"], wide["sparse"]["epochs"][i]["loss"], 2e-2);
  const json &step = narrow["step_on_machine"], &wide_step = wide["step_on_machine"];
  EXPECT_EQ(narrow["data_type"], "half");
  EXPECT_NE(step["cycles"], wide_step["cycles"]);
  ASSERT_EQ(step["searches"].size(), 1U) << "the last layer is dense and does not search";
  EXPECT_GT(step["searches"][0]["dense_gradient_cycles"], 0);
  EXPECT_GT(step["searches"][0]["selection_cycles"], 0);
}

TEST_F(TrainCommand, EndsOnAMachineWithTheVerdictAgainstDense) {
  EXPECT_THAT(train({"--machine", "gc200", "--epochs", "1"}).out,
              AllOf(HasSubstr("the last step on gc200 (modelled)"), HasSubstr("GradA"),
                    HasSubstr("biases, ReLU and loss run on this computer"), HasSubstr("update"),
                    HasSubstr("bytes for new patterns"), HasSubstr("\nrewire     mean of "),
                    HasSubstr("less than 5 % of the time"), HasSubstr("\nverdict    ")));
}

TEST_F(TrainCommand, PricesRewiresByTheLinkOfTheMachineFile) {
  const std::string file = folder_ / "slow.json";
  tessera::write_file(file, R"({"base": "gc200", "host_bytes_per_second": 1e6})");
  const json slow = json::parse(train({"--json", "--machine", file, "--epochs", "1"}).out);
  const json& rewire = slow["step_on_machine"]["rewire"];
  EXPECT_DOUBLE_EQ(rewire["upload_seconds"], 1e-5 + double(rewire["upload_bytes"]) / 1e6);
  const json fixed =
      json::parse(train({"--json", "--machine", "gc200", "--epochs", "1", "--every", "1000"}).out);
  EXPECT_TRUE(fixed["step_on_machine"]["rewire"].is_null());
  const json random =
      json::parse(train({"--json", "--machine", "gc200", "--epochs", "1", "--method", "set"}).out);
  EXPECT_EQ(random["step_on_machine"]["rewire"]["dense_gradient_cycles"], 0);
}

TEST_F(TrainCommand, PricesRewiresThatOnlyRemove) {
  const json pruned = json::parse(train({"--json", "--machine", "gc200", "--method", "prune",
                                         "--density-schedule", "linear", "--density", "0.3"})
                                      .out);
  const json& rewire = pruned["step_on_machine"]["rewire"];
  std::int64_t moved = 0;
  double seconds = 0;
  for (const json& one : pruned["sparse"]["rewires"]) {
    moved += std::int64_t(one["moved"]);
    seconds += double(one["seconds"]);
  }
  EXPECT_EQ(moved, 0);
  ASSERT_FALSE(rewire.is_null());
  EXPECT_GT(rewire["rewires"], 0);
  EXPECT_GE(rewire["host_seconds"], 0);
  EXPECT_LE(double(rewire["host_seconds"]) * double(rewire["rewires"]), seconds);
  EXPECT_EQ(pruned["every"], 3);
  EXPECT_EQ(pruned["epochs"], 4);
  EXPECT_EQ(pruned["constant_fan_in"], false);
}

TEST_F(TrainCommand, UsesTheFirstImagesOnly) {
  const json all = json::parse(train({"--json"}).out),
             few = json::parse(train({"--json", "--images", "50"}).out);
  EXPECT_EQ(all["sparse"]["steps"], 4 * 12);
  EXPECT_EQ(few["sparse"]["steps"], 4 * 3);
}

TEST_F(TrainCommand, TakesTheDensityDownAndGoesOnFromTheMiddle) {
  const std::string file = folder_ / "run.safetensors";
  for (const std::string method : {"prune", "top-k", "rigl"}) {
    std::filesystem::remove(file);
    const std::vector<std::string> words = {
        "--json", "--method",  method, "--density-schedule", "cubic", "--min-per-neuron",
        "1",      "--density", "0.2",  "--optimiser",        "adam",  "--checkpoint",
        file};
    const Outcome whole = train(words);
    ASSERT_EQ(whole.exit, tools::kOk) << whole.err;
    const json figures = json::parse(whole.out);
    EXPECT_EQ(figures["dead_neurons"], 0);
    EXPECT_EQ(figures["density_schedule"]["curve"], "cubic");
    EXPECT_LT(figures["sparse"]["epochs"][3]["loss"], figures["sparse"]["epochs"][0]["loss"]);
    std::vector<std::string> again = words;
    again[again.size() - 2] = "--resume";
    EXPECT_EQ(without_seconds(train(again).out)["sparse"], without_seconds(whole.out)["sparse"]);
    std::vector<std::string> text(words.begin() + 1, words.end() - 2);
    EXPECT_THAT(train(text).out, AllOf(HasSubstr("density 1.0000"), HasSubstr(" %  density ")));
  }
}

TEST_F(TrainCommand, TellsOfDeadNeuronsAndKeepsThemAlive) {
  const std::vector<std::string> words = {"--json", "--density", "0.06"};
  std::vector<std::string> kept = words;
  kept.insert(kept.end(), {"--min-per-neuron", "1"});
  const Outcome dying = train(words), living = train(kept);
  EXPECT_GT(json::parse(dying.out)["dead_neurons"], 0);
  EXPECT_THAT(dying.err, HasSubstr("of 30 hidden neurons are dead"));
  EXPECT_EQ(json::parse(living.out)["dead_neurons"], 0);
  EXPECT_EQ(living.err, "");
}

TEST_F(TrainCommand, ReportsTheOptionsThatItsMethodReads) {
  const json fixed = json::parse(train({"--json", "--epochs", "1", "--method", "static"}).out);
  for (const char* idle : {"every", "fraction", "factor", "search"})
    EXPECT_TRUE(fixed.at(idle).is_null()) << idle;
  const json sampled = json::parse(train({"--json", "--epochs", "1", "--method", "sampled"}).out);
  EXPECT_EQ(sampled["every"], 3);
  EXPECT_EQ(sampled["fraction"], 0.3);
  EXPECT_EQ(sampled["factor"], 2);
  EXPECT_TRUE(sampled["search"].is_null());
}

TEST_F(TrainCommand, SearchesTheLargestWeightsInThreeWays) {
  for (const std::string search : {"exact", "shortlist", "sampled"}) {
    const Outcome outcome = train({"--json", "--method", "top-k", "--search", search});
    ASSERT_EQ(outcome.exit, tools::kOk) << outcome.err;
    const json figures = json::parse(outcome.out);
    EXPECT_GT(figures["sparse"]["rewires"][1]["moved"], 0);
  }
}

TEST_F(TrainCommand, TrainsTheNetworkOfAFileAsThatOfTheOptions) {
  const Outcome by_file = train_file(kFile, {"--json"});
  ASSERT_EQ(by_file.exit, tools::kOk) << by_file.err;
  const json file = without_seconds(by_file.out),
             options = without_seconds(train({"--json", "--epochs", "2"}).out);
  EXPECT_EQ(file["sparse"], options["sparse"]);
  EXPECT_EQ(file["network"], options["network"]);
  EXPECT_EQ(file["density"], nullptr);
  // The JSON of a run is the file of its network.
  EXPECT_EQ(without_seconds(train_file(options["network"].dump(), {"--json"}).out)["sparse"],
            options["sparse"]);
}

TEST_F(TrainCommand, GoesOnWithTheNetworkOfAFileAndItsWeights) {
  const std::string file = folder_ / "run.safetensors";
  json text = json::parse(kFile);
  text["layers"][0]["activation"] = "gelu";
  text["layers"][1]["bias"] = false;
  text["layers"][0].erase("density");
  text["layers"][0]["weights"] = "first.smtx";
  io::write_smtx_file(folder_ / "first.smtx", sparse::random_pattern(30, 20, {1, 1}, 0.25, 3));
  const Outcome whole = train_file(text.dump(), {"--json", "--checkpoint", file});
  ASSERT_EQ(whole.exit, tools::kOk) << whole.err;
  EXPECT_THAT(whole.out, HasSubstr("150 weights, density 0.2500"));
  const Outcome again = train_file(text.dump(), {"--json", "--resume", file});
  EXPECT_EQ(without_seconds(again.out), without_seconds(whole.out));
  text["optimiser"]["rate"] = 0.05;
  EXPECT_THAT(train_file(text.dump(), {"--resume", file}).err, HasSubstr("this run has"));
}

TEST_F(TrainCommand, TrainsAResidentProgramWithTheLossesOfThisComputer) {
  const std::vector<std::string> fixed = {"--json", "--method", "static"};
  std::vector<std::string> resident = fixed;
  resident.insert(resident.end(), {"--resident", "--machine", "gc200"});
  for (const bool by_file : {false, true}) {
    const Outcome there = by_file ? train_file(kFile, resident) : train(resident);
    ASSERT_EQ(there.exit, tools::kOk) << there.err;
    const json run = json::parse(there.out)["resident"],
               here =
                   json::parse((by_file ? train_file(kFile, fixed) : train(fixed)).out)["sparse"];
    ASSERT_EQ(run["epochs"].size(), here["epochs"].size());
    for (std::size_t e = 0; e < run["epochs"].size(); ++e) {
      EXPECT_NEAR(run["epochs"][e]["loss"], here["epochs"][e]["loss"], 1e-4);
      EXPECT_NEAR(run["epochs"][e]["test_loss"], here["epochs"][e]["test_loss"], 1e-4);
      EXPECT_EQ(run["epochs"][e]["cycles"],
                std::int64_t(run["step_cycles"]) * std::int64_t(run["steps_per_epoch"]));
    }
    EXPECT_GT(run["layer_by_layer_cycles"], run["step_cycles"]);
  }
  resident.insert(resident.end(), {"--density", "0.06"});
  const Outcome dying = train(resident);
  const json figures = json::parse(dying.out);
  EXPECT_GT(figures["dead_neurons"], 0);
  EXPECT_THAT(dying.err, HasSubstr("of 30 hidden neurons are dead"));
  EXPECT_THAT(figures["notes"].dump(), HasSubstr("layer 1: 30 x 20"));
  EXPECT_THAT(
      train({"--method", "dense", "--resident", "--machine", "gc200", "--density", "1"}).err,
      HasSubstr("stores all weights"));
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

TEST_F(TrainCommand, SaysThatThereIsNoSpaceForACheckpoint) {
  const Outcome outcome = train({"--epochs", "1", "--checkpoint", "/dev/full"});
  EXPECT_EQ(outcome.exit, tools::kInternal);
  EXPECT_THAT(outcome.err, HasSubstr("/dev/full: cannot be written: No space left on device"));
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
  refused({"--data-type", "half"}, tools::kUsage, "modelled --machine only");
  refused({"--search", "exact"}, tools::kUsage, "--method top-k only");
  refused({"--method", "top-k", "--factor", "3"}, tools::kUsage, "--search shortlist");
  refused({"--method", "top-k", "--fraction", "0.1"}, tools::kUsage, "set, rigl or sampled only");
  refused({"--method", "top-k", "--block", "4"}, tools::kUsage, "must be 1");
  refused({"--method", "prune"}, tools::kUsage, "needs --density-schedule");
  refused({"--method", "static", "--density-schedule", "cubic"}, tools::kUsage, "pattern changes");
  refused({"--first-density", "0.5"}, tools::kUsage, "--density-schedule only");
  refused({"--density-schedule", "cubic", "--every", "40"}, tools::kUsage, "patterns never change");
  refused({"--density", "0.02", "--min-per-neuron", "2"}, tools::kUsage, "density of");
  refused({"--method", "dense"}, tools::kUsage, "stores all weights");
  refused({"--layers", "21,30,10"}, tools::kUsage, "images have 20 pixels");
  refused({"--density", "0.0001"}, tools::kUsage, "has no block");
  refused({"--csv", "--json"}, tools::kUsage, "excludes");
  refused({"--machine", "nothing"}, tools::kUsage, "nothing");
  refused({"--images", "15"}, tools::kUsage, "there are 15 training images");
  refused({"--resume", folder_ / "nothing"}, tools::kBadInput, "nothing");
  refused({"--resident", "--method", "static"}, tools::kUsage, "modelled --machine only");
  refused({"--resident", "--machine", "gc200"}, tools::kUsage, "choose --method static or dense");
  refused({"--resident", "--machine", "gc200", "--method", "static", "--csv"}, tools::kUsage,
          "cannot be with --resident");
  refused({folder_.write("net.json", kFile)}, tools::kUsage, "the file describes the network");
}

TEST_F(TrainCommand, RefusesFilesThatCannotBeTrained) {
  const auto refusal = [&](const char* path, const json& value) {
    json text = json::parse(kFile);
    text[json::json_pointer(path)] = value;
    const Outcome outcome = train_file(text.dump());
    EXPECT_NE(outcome.exit, tools::kOk) << path;
    return outcome.err;
  };
  EXPECT_THAT(refusal("/loss", "mean-squared-error"), HasSubstr("must be softmax-cross-entropy"));
  EXPECT_THAT(refusal("/data_type", "half"),
              HasSubstr("must be float on this computer; give \"data_type\" as float or train"));
  EXPECT_THAT(refusal("/layers/0/inputs", 21), HasSubstr("images have 20 pixels"));
  EXPECT_THAT(refusal("/batch", 1000), HasSubstr("the batch is 1000; there are 200"));
  EXPECT_THAT(refusal("/layers/0/recompute", true), HasSubstr("recomputes its results"));
  json blocks = json::parse(kFile);
  blocks["layers"][0]["block_size"] = 2;
  EXPECT_THAT(train_file(blocks.dump(), {"--method", "top-k"}).err,
              HasSubstr("layer 1 has blocks of 2 x 2; choose blocks of 1 x 1"));
  EXPECT_THAT(train_file(kFile, {"--block", "4"}).err, HasSubstr("the file describes the network"));
}

}  // namespace
}  // namespace tessera::test
