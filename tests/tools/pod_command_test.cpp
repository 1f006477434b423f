#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tessera/tests/support/process.hpp"

namespace tessera::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A folder of this test, which is removed at its end.
class PodCommand : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& name) const { return (folder_ / name).string(); }

  std::string contents(const std::string& name) const {
    std::ifstream in(file(name));
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }

  std::string with_contents(const std::string& name, const std::string& text) const {
    std::ofstream(file(name)) << text;
    return file(name);
  }

  static std::vector<std::string> small(const std::string& command, std::vector<std::string> more) {
    std::vector<std::string> all{TESSERA_TOOL,       command,         "--input-size=96",
                                 "--output-size=80", "--density=0.2", "--batch-size=24"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  // Links that are fast for a small layer, so that it pays to cut it.
  std::string fast_pod() const {
    return with_contents("pod.json",
                         R"({"name": "fast", "machine": {"base": "bow", "tiles": 8}, "levels": [
        {"kind": "full", "devices": 2, "bytes_per_second": 1e13, "step_seconds": 1e-9,
         "barrier_seconds": 0},
        {"kind": "ring", "devices": 3, "bytes_per_second": 1e13, "step_seconds": 1e-9,
         "barrier_seconds": 0}]})");
  }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() /
      ("tessera_pod_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
};

TEST_F(PodCommand, PlansExplainsAndReadsItsPlanAgain) {
  const Outcome text = run(small("plan", {"--pod", fast_pod(), "--explain"}));
  EXPECT_EQ(text.exit, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("grid       g1"), HasSubstr("data parallel"),
                              HasSubstr("x alone"), HasSubstr("one device")));
  const Outcome json = run(small("plan", {"--pod", fast_pod(), "--json", "--explain"}));
  const auto plan = nlohmann::json::parse(json.out);
  EXPECT_GT(plan["cost"]["seconds"], 0);
  EXPECT_EQ(plan["explanation"]["grids"][0]["kind"], "fastest");
  const std::string path = with_contents("plan.json", json.out);
  const Outcome again = run({TESSERA_TOOL, "plan", "--pod", fast_pod(), "--plan", path});
  EXPECT_EQ(again.exit, 0) << again.err;
  EXPECT_THAT(text.out, HasSubstr(again.out));
  const Outcome other = run({TESSERA_TOOL, "plan", "--devices", "2", "--plan", path});
  EXPECT_EQ(other.exit, 2);
  EXPECT_THAT(other.err, HasSubstr("the plan is for"));
}

TEST_F(PodCommand, RunsChecksAndReportsALayer) {
  const Outcome text = run(small("run", {"--pod", fast_pod()}));
  EXPECT_EQ(text.exit, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("slowest is device"), HasSubstr("check      ok"),
                              HasSubstr("of 6 devices (modelled)")));
  const Outcome json =
      run(small("run", {"--pod", fast_pod(), "--json", "--trace", file("trace.json"),
                        "--devices-side-by-side", "--self-check"}));
  const auto report = nlohmann::json::parse(json.out);
  EXPECT_EQ(report["study"], "pod");
  EXPECT_EQ(report["passes"].size(), 3U);
  EXPECT_EQ(report["devices"].size(), 6U);
  EXPECT_THAT(contents("trace.json"), HasSubstr("device 5"));
}

TEST_F(PodCommand, FindsAFaultOnADeviceAndNamesIt) {
  bool found = false;
  for (int bit = 0; bit < 4000 && !found; bit += 97) {
    const std::string fault = "device=4,tile=2,step=2,bit=" + std::to_string(bit);
    const Outcome outcome = run(small(
        "run", {"--pod", fast_pod(), "--single-phase=fwd", "--self-check", "--inject", fault}));
    found = outcome.exit == 1;
    if (found) {
      EXPECT_THAT(outcome.err, HasSubstr("device 4 ("));
    }
  }
  EXPECT_TRUE(found);
}

TEST_F(PodCommand, SaysWhatAFaultDidAndOnWhichDevice) {
  const Outcome struck = run(small("run", {"--pod", fast_pod(), "--single-phase=wu",
                                           "--inject=tile=2,step=1,bit=9,device=3,pass=wu"}));
  EXPECT_THAT(struck.out, HasSubstr("fault on device 3: one bit of byte 1 of"));
  const Outcome missed = run(
      small("run", {"--pod", fast_pod(), "--single-phase=fwd", "--inject=tile=2,step=99,bit=0"}));
  EXPECT_EQ(missed.exit, 0) << missed.err;
  EXPECT_THAT(missed.out, HasSubstr("fault on device 0: no bit was flipped"));
}

TEST_F(PodCommand, SaysThatASampleIsIncomplete) {
  const Outcome outcome = run(small(
      "run", {"--pod", fast_pod(), "--devices-simulated", "2", "--output-dir", file("sample")}));
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("2 devices were simulated"));
  EXPECT_TRUE(std::filesystem::exists(file("sample/report.json")));
  EXPECT_FALSE(std::filesystem::exists(file("sample/q.npy"))) << "results are not complete";
}

TEST_F(PodCommand, SweepsOverDevicesByPlanningAlone) {
  const std::vector<std::string> sweep =
      small("sweep", {"--devices=1,4,64,1024", "--machine=bow", "--tiles-per-ipu=16", "--json"});
  const Outcome outcome = run(sweep);
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  const auto points = nlohmann::json::parse(outcome.out)["points"];
  ASSERT_EQ(points.size(), 8U);
  EXPECT_EQ(points[0]["efficiency"], 1.0);
  EXPECT_EQ(points[7]["batch"], 24 * 1024);
  // More devices never take longer: a part of them may be used.
  for (int i = 1; i < 4; ++i) EXPECT_LE(points[i]["seconds"], points[i - 1]["seconds"]);
}

TEST_F(PodCommand, RefusesWhatIsForOneDevice) {
  const auto refuses = [](const std::vector<std::string>& words, const std::string& says) {
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.exit, 2) << outcome.out;
    EXPECT_THAT(outcome.err, HasSubstr(says));
  };
  refuses(small("run", {"--devices=4", "--static"}), "is for one device");
  refuses(small("run", {"--devices=4", "--machine=host"}), "--machine is host");
  refuses(small("run", {"--devices-simulated=2"}), "applies only to --devices or --pod");
  refuses(small("run", {"--inject=tile=0,step=0,bit=0,device=1"}), "applies only to --devices");
  refuses(small("plan", {"--devices=4", "--block-size=auto"}), "auto is for one device");
  refuses(small("plan", {"--devices=3"}), "3 devices cannot be joined");
  refuses(small("plan", {"--devices=4", "--pod=bow-pod4"}), "--pod");
  refuses(small("run", {"--devices=4", "--devices-simulated=1", "--inject=tile=0,step=0,bit=0"}),
          "leave out --devices-simulated");
  refuses(small("sweep", {}), "--over");
  refuses(small("sweep", {"--devices=4,1"}), "greater than the one before");
  refuses(small("sweep", {"--devices=1,5"}), "5 devices cannot be joined");
}

}  // namespace
}  // namespace tessera::test
