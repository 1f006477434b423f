#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "tessera/host/cpu.hpp"
#include "tessera/host/rates.hpp"
#include "tessera/io/write.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/support/process.hpp"
#include "tessera/tests/tools/json_schema.hpp"

// Forecasts of tessera for layers on this computer, and the measurements behind them.
namespace tessera::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

json schema_of(const std::string& document) {
  return json::parse(read_file(TESSERA_SOURCE_DIR "/docs/" + document + ".schema.json"));
}

// Runs with a cache folder of its own.
Outcome with_cache(const TemporaryFolder& folder, const std::string& command) {
  return run({"/bin/sh", "-c", "XDG_CACHE_HOME=\"$1\" \"$0\" " + command, TESSERA_TOOL,
              folder.path().string()});
}

// Stores rates for this computer in a cache folder, so that nothing is measured.
void store_rates(const TemporaryFolder& folder) {
  host::HostRates rates = host::default_host_rates();
  rates.cpu_model = host::host_cpu_model();
  rates.dense_kernel = host::dense_kernel_name();
  std::filesystem::create_directory(folder / "tessera");
  folder.write("tessera/host_rates.json", host::to_json(rates));
}

// On the computer of the default rates nothing is measured; elsewhere, at the first forecast.
TEST(HostRates, AreTheDefaultUntilCalibratedAndThenThisComputersOwn) {
  const TemporaryFolder folder;
  const bool is_default = host::default_host_rates().cpu_model == host::host_cpu_model();
  const std::string plan =
      "plan --machine host --input-size 512 --output-size 256 --density 0.1 --batch-size 64";
  EXPECT_THAT(with_cache(folder, plan).out,
              HasSubstr(is_default ? "note       using default rates" : "measured now"));
  const auto reported = [&] {
    return json::parse(with_cache(folder,
                                  "run --machine host --input-size 20 --output-size 20 "
                                  "--density 0.5 --json")
                           .out);
  };
  EXPECT_NE(reported()["host"].contains("thread_peak_flops_per_second"), is_default);
  const Outcome calibrated = with_cache(folder, "machine calibrate");
  if (calibrated.err.find("did not settle") != std::string::npos)
    GTEST_SKIP() << "other programs use this computer: " << calibrated.err;
  EXPECT_EQ(calibrated.exit, 0) << calibrated.err;
  EXPECT_THAT(calibrated.out, HasSubstr("float GFLOP/s a thread"));
  const json rates = json::parse(read_file(folder / "tessera/host_rates.json"));
  EXPECT_GT(rates["peak_flops"], 1e8);
  const json report = reported();
  EXPECT_EQ(report["host"]["thread_peak_flops_per_second"], rates["peak_flops"]);
  EXPECT_EQ(report["how"]["thread_peak_flops_per_second"], "measured");
  EXPECT_EQ(schema_breach(schema_of("report"), report), "");
  const Outcome after = with_cache(folder, plan);
  EXPECT_EQ(after.exit, 0) << after.err;
  EXPECT_THAT(after.out, testing::Not(HasSubstr("note")));
  for (const char* way :
       {"1x1     Fwd", "4x4     GradA", "16x16   GradW", "dense   GradW", "fastest: "})
    EXPECT_THAT(after.out, HasSubstr(way));
}

// A folder that cannot be written is wrong usage before the measurement, and a failure after it.
TEST(HostRates, AreNotMeasuredIfTheyCannotBeStored) {
  const TemporaryFolder folder;
  folder.write("tessera", "a file, no folder");
  const Outcome outcome = with_cache(folder, "machine calibrate");
  EXPECT_EQ(outcome.exit, 2) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr(folder / "tessera"));
}

TEST(HostPlan, TakesGroupsAndFilesAndRefusesPlansOfTiles) {
  const TemporaryFolder folder;
  store_rates(folder);
  io::write_mtx_file(folder / "w.mtx", sparse::random_pattern(64, 48, {1, 1}, 0.25, 3));
  const Outcome file = with_cache(folder, "plan --machine host --matrix " + (folder / "w.mtx"));
  EXPECT_EQ(file.exit, 0) << file.err;
  EXPECT_THAT(file.out, HasSubstr("x64 y48"));
  const std::string sizes = " --machine host --input-size 64 --output-size 64 --density 0.1";
  EXPECT_THAT(with_cache(folder, "plan --groups 3" + sizes).out, HasSubstr("g3 x64 y64"));
  for (const char* option : {"--explain", "--cost-model popsparse", "--plan-cache d"})
    EXPECT_EQ(with_cache(folder, "plan" + sizes + " " + option).exit, 2) << option;
  EXPECT_EQ(with_cache(folder, "sweep --over tiles --values 8" + sizes).exit, 2);
}

const char* const kLayer =
    "plan --machine host --input-size 512 --output-size 256 --density 0.1 --batch-size 64";

// The line that a text has for a way to hold R and a pass.
std::string row_of(const std::string& text, const std::string& way, const std::string& pass) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string first, second;
    if (words >> first >> second && first == way && second == pass) return line;
  }
  return {};
}

TEST(HostPlanJson, FollowsItsSchemaWhateverTheLayer) {
  const TemporaryFolder folder;
  store_rates(folder);
  for (const char* more : {"", " --block-size 8", " --block-rows 3 --block-cols 5", " --groups 3",
                           " --single-phase fwd", " --data-type float"}) {
    const Outcome outcome = with_cache(folder, std::string(kLayer) + " --json" + more);
    ASSERT_EQ(outcome.exit, 0) << outcome.err;
    EXPECT_EQ(schema_breach(schema_of("host_plan"), json::parse(outcome.out)), "") << more;
  }
}

TEST(HostPlanJson, TheSchemaRefusesWhatIsNoPlanOfThisComputer) {
  const TemporaryFolder folder;
  store_rates(folder);
  const json plan = json::parse(with_cache(folder, std::string(kLayer) + " --json").out);
  for (const char* pointer :
       {"/host/cpu", "/rates/origin", "/passes/0/cells", "/ways/0/passes/0/copy_seconds"}) {
    json changed = plan;
    changed[json::json_pointer(pointer)] = json::array({"no"});
    EXPECT_NE(schema_breach(schema_of("host_plan"), changed), "") << pointer;
  }
  json changed = plan;
  changed.erase("rates");
  EXPECT_NE(schema_breach(schema_of("host_plan"), changed), "");
}

TEST(HostPlanJson, SaysWhatTheTextSays) {
  const TemporaryFolder folder;
  store_rates(folder);
  const json plan = json::parse(with_cache(folder, std::string(kLayer) + " --json").out);
  const std::string text = with_cache(folder, kLayer).out;
  EXPECT_EQ(plan["rates"]["origin"], "file");
  for (const json& note : plan["notes"])
    EXPECT_THAT(text, HasSubstr("note       " + note.get<std::string>()));
  EXPECT_THAT(text, HasSubstr("fastest: " + plan["fastest"].get<std::string>() + ", "));
  ASSERT_EQ(plan["ways"].size(), 5u);
  for (const json& way : plan["ways"])
    for (const json& pass : way["passes"]) {
      const std::string row = row_of(text, way["name"], pass["pass"]);
      for (const char* term : {"copy_seconds", "kernel_seconds", "stream_seconds", "result_seconds",
                               "forecast_seconds"})
        EXPECT_THAT(row, HasSubstr(fmt::format("{:14.4f}", 1e3 * pass[term].get<double>())))
            << way["name"] << term;
    }
  const json& cells = plan["passes"][1]["cells"];
  EXPECT_THAT(text, HasSubstr(fmt::format("GradA   {:>10}{:>10}{:>10}", int(cells["outputs"]),
                                          int(cells["inputs"]), int(cells["batch"]))));
}

TEST(HostPlanJson, GoesWhereOutputSays) {
  const TemporaryFolder folder;
  store_rates(folder);
  const Outcome outcome =
      with_cache(folder, std::string(kLayer) + " --json --output " + (folder / "plan.json"));
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(schema_breach(schema_of("host_plan"), json::parse(read_file(folder / "plan.json"))),
            "");
}

TEST(HostPlan, EndsInAVerdictThatIsAForecast) {
  const Outcome outcome = run({TESSERA_TOOL, "plan", "--machine=host", "--input-size=960",
                               "--output-size=640", "--density=0.01", "--batch-size=64"});
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              testing::ContainsRegex(
                  "\nverdict    1x1 blocks Fwd [0-9.]+ ms, [0-9.]+x faster "
                  "than dense \\([0-9.]+, [^)]*float\\); whole[ \n]+step[ \n]+[0-9.]+x"));
}

TEST(HostCrossover, MeasuresADensityForEveryBlockAndType) {
  for (const std::string type : {"float", "half", "bfloat16"}) {
    SCOPED_TRACE(type);
    const Outcome outcome =
        run({TESSERA_TOOL, "crossover", "--machine", "host", "--input-size=96", "--output-size=64",
             "--batch-size=8", "--single-phase=fwd", "--data-type=" + type});
    EXPECT_EQ(outcome.exit, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("measured"));
    for (const char* block : {"\n1x1 ", "\n4x4 ", "\n8x8 ", "\n16x16 "})
      EXPECT_THAT(outcome.out, HasSubstr(block));
  }
}

TEST(HostCrossover, ComparesAPatternWithTheFastestDenseProductAndNamesIt) {
  const TemporaryFolder folder;
  const std::string file = folder.write("w.smtx", "8, 8, 3\n0 1 2 3 3 3 3 3 3\n0 5 7\n");
  const Outcome outcome = run({TESSERA_TOOL, "crossover", "--machine=host", "--matrix=" + file,
                               "--block-size=4", "--batch-size=8", "--single-phase=fwd"});
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_THAT(outcome.out, testing::ContainsRegex("dense: .* \\+-.* %.*(half|float), measured"));
  EXPECT_THAT(outcome.out, HasSubstr("this pattern in 4x4 blocks"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("\n1x1 ")));
}

TEST(HostCrossover, HasTheMeasuredPointsInItsJson) {
  const Outcome outcome =
      run({TESSERA_TOOL, "crossover", "--machine=host", "--input-size=96", "--output-size=64",
           "--block-size=4", "--single-phase=fwd", "--json"});
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  const json study = json::parse(outcome.out);
  EXPECT_EQ(study["how"], "measured");
  EXPECT_GT(study["dense_seconds"], 0);
  ASSERT_EQ(study["blocks"].size(), 1u);
  ASSERT_EQ(study["curve"].size(), 5u) << "one point for each halving";
  for (const json& point : study["curve"]) {
    const bool wins = point["seconds"] < study["dense_seconds"];
    EXPECT_EQ(wins, point["density"] <= study["blocks"][0]["crossover_density"]) << point;
  }
}

}  // namespace
}  // namespace tessera::test
