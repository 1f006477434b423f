#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "tessera/base/random_matrix.hpp"
#include "tessera/sparse/array.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/sparse/write.hpp"
#include "tessera/tests/support/process.hpp"
#include "tessera/tests/tools/json_schema.hpp"

namespace tessera::inline v0::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::vector<std::string> on_host(std::vector<std::string> more = {}) {
  std::vector<std::string> words{TESSERA_SPARSE_FC_LAYER, "--machine=host", "--input-size=50",
                                 "--output-size=34",      "--density=0.3",  "--batch-size=7"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

json schema() { return json::parse(read_file(TESSERA_SOURCE_DIR "/docs/report.schema.json")); }

TEST(HostRun, IsRightInEveryTypePatternBlockAndPass) {
  for (const char* type : {"--data-type=float", "--data-type=half"})
    for (const auto& more : std::vector<std::vector<std::string>>{
             {},
             {"--block-size=4"},
             {"--block-size={3,5}", "--single-phase=bwd"},
             {"--block-size=16", "--single-phase=wu", "--threads=1"},
             {"--pattern=power-law", "--threads=3"},
             {"--pattern=banded", "--single-phase=fwd"}}) {
      std::vector<std::string> words = on_host({type});
      words.insert(words.end(), more.begin(), more.end());
      const Outcome outcome = run(words);
      EXPECT_EQ(outcome.exit, 0) << outcome.err;
      EXPECT_THAT(outcome.out, HasSubstr("PASS: "));
      EXPECT_THAT(outcome.out, HasSubstr("Fwd     ok: 238 results"));
      EXPECT_THAT(outcome.out, HasSubstr("machine   host: "));
    }
}

TEST(HostRun, ReportsFollowTheSchemaInEveryKindOfRun) {
  for (const char* more : {"--single-phase=all", "--plan-only", "--ignore-data"}) {
    const Outcome outcome = run(on_host({"--json", more}));
    EXPECT_EQ(outcome.exit, 0) << outcome.err;
    EXPECT_EQ(schema_breach(schema(), json::parse(outcome.out)), "") << more;
  }
}

TEST(HostRun, TheSchemaRefusesWhatIsNoReportOfThisComputer) {
  const json report = json::parse(run(on_host({"--json"})).out);
  for (const char* pointer : {"/passes/0/cells/inputs", "/host/cpu", "/total/seconds"}) {
    json changed = report;
    changed[json::json_pointer(pointer)] = json::array();
    EXPECT_NE(schema_breach(schema(), changed), "") << pointer;
  }
  json changed = report;
  changed.erase("host");
  EXPECT_NE(schema_breach(schema(), changed), "");
}

TEST(HostRun, SaysWhatIsMeasuredAndCounts) {
  const json report = json::parse(run(on_host({"--json", "--threads=2", "--seed=5"})).out);
  EXPECT_EQ(report["how"]["seconds"], "measured");
  EXPECT_EQ(report["how"]["useful_flops"], "counted");
  EXPECT_EQ(report["status"], "passed");
  EXPECT_EQ(report["host"]["threads"], 2);
  EXPECT_EQ(report["host"]["cores"], std::max(1u, std::thread::hardware_concurrency()));
  ASSERT_EQ(report["passes"].size(), 3u);
  double seconds = 0;
  for (const json& pass : report["passes"]) {
    EXPECT_EQ(pass["useful_flops"], 2.0 * report["host"]["values"].get<double>() * 7);
    EXPECT_GT(pass["seconds"], 0.0);
    EXPECT_LE(pass["kernel_thread_seconds"], 2 * pass["seconds"].get<double>());
    EXPECT_GE(pass["runs"], 3);
    EXPECT_EQ(pass["check"]["wrong"], 0);
    seconds += pass["seconds"].get<double>();
  }
  EXPECT_DOUBLE_EQ(report["total"]["seconds"], seconds);
  EXPECT_GT(report["total"]["encode_seconds"], 0.0);
}

TEST(HostRun, StopsWhenPlannedAndNeverPassesUnchecked) {
  const json planned = json::parse(run(on_host({"--json", "--plan-only"})).out);
  EXPECT_EQ(planned["status"], "planned");
  EXPECT_FALSE(planned["passes"][0].contains("seconds"));
  EXPECT_EQ(planned["passes"][0]["cells"]["inputs"], 50);
  EXPECT_THAT(run(on_host({"--ignore-data"})).out, HasSubstr("UNCHECKED: "));
}

TEST(HostRun, CsvHasThreePhasesAPassUnderTheOneHeading) {
  const auto lines_of = [](const std::string& text) {
    std::istringstream stream(text);
    std::vector<std::string> lines;
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
  };
  const auto modelled = lines_of(run({TESSERA_SPARSE_FC_LAYER, "--input-size=48", "--csv",
                                      "--output-size=32", "--density=0.25", "--tiles-per-ipu=8"})
                                     .out);
  const auto host = lines_of(run(on_host({"--csv"})).out);
  ASSERT_EQ(host.size(), 1 + 3 * 3u);
  EXPECT_EQ(host[0], modelled[0]);
  EXPECT_THAT(modelled[1], testing::EndsWith(",modelled"));
  for (std::size_t i = 1; i < host.size(); ++i) {
    std::string line = host[i];
    line.erase(0, line.find('"', 1) + 1);  // the source has commas of its own
    EXPECT_EQ(std::count(line.begin(), line.end(), ','),
              std::count(host[0].begin(), host[0].end(), ','));
    EXPECT_THAT(line, testing::EndsWith(",measured"));
  }
}

TEST(HostRun, RefusesWhatOnlyTilesHaveAndSaysSo) {
  for (const char* option :
       {"--tiles-per-ipu=8", "--isolate", "--inject=tile=0,step=0,bit=0", "--self-check",
        "--compile-only", "--trace=f.json", "--html=f.html", "--profile", "--report-plan",
        "--report-total-cycle-counts", "--report-dense-gradw-serial-splits", "--plan-cache=d",
        "--on-no-fit=best-effort", "--plan-constraints={}", "--plan=f",
        R"(--matmul-options={"metaInfoBucketOversizeProportion":0.5})"}) {
    const Outcome outcome = run(on_host({option}));
    EXPECT_EQ(outcome.exit, 2) << option;
    const std::string name = std::string(option).substr(0, std::string(option).find('='));
    EXPECT_THAT(outcome.out + outcome.err, HasSubstr(name + ": is about machines made of tiles"))
        << option;
  }
}

TEST(HostRun, TakesTheKeysThatBelongToTheLayer) {
  const Outcome outcome =
      run(on_host({"--json", R"(--matmul-options={"doGradAPass":"false","doGradWPass":true})"}));
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  const json report = json::parse(outcome.out);
  ASSERT_EQ(report["passes"].size(), 2u);
  EXPECT_EQ(report["passes"][1]["pass"], "GradW");
}

TEST(HostRun, SaysWhichTypesThisComputerTakes) {
  const Outcome bfloat = run(on_host({"--data-type=bfloat16"}));
  EXPECT_EQ(bfloat.exit, 2);
  EXPECT_THAT(bfloat.err, HasSubstr("takes float and half"));
  const Outcome sums = run(on_host({"--partials-type=half", "--block-size=4"}));
  EXPECT_EQ(sums.exit, 2);
  EXPECT_THAT(sums.err, HasSubstr("adds in float only"));
}

TEST(HostRun, GivesTheResultsOfTheModelledMachineFromFiles) {
  const TemporaryFolder folder;
  sparse::write_mtx_file(folder / "w.mtx", sparse::random_pattern(32, 48, {1, 1}, 0.25, 3));
  const Matrix<float> s = random_matrix<float>(48, 5, 9);
  sparse::write_file(folder / "s.npy", sparse::write_npy(s.view()));
  for (const char* machine : {"gc200", "host"}) {
    const Outcome outcome =
        run({TESSERA_SPARSE_FC_LAYER, "--matrix=" + (folder / "w.mtx"),
             "--input=" + (folder / "s.npy"), "--data-type=float", "--single-phase=fwd",
             std::string("--machine=") + machine, "--output-dir=" + (folder / machine)});
    EXPECT_EQ(outcome.exit, 0) << outcome.err;
  }
  const auto result = [&](const std::string& machine) {
    const std::string path = folder / machine + "/q.npy";
    return sparse::read_npy(read_file(path), path);
  };
  const sparse::Array modelled = result("gc200"), measured = result("host");
  EXPECT_EQ(measured.shape, modelled.shape);
  for (std::size_t i = 0; i < measured.values.size(); ++i)
    EXPECT_NEAR(measured.values[i], modelled.values[i], 1e-5);
  EXPECT_EQ(schema_breach(schema(), json::parse(read_file(folder / "host/report.json"))), "");
  EXPECT_THAT(read_file(folder / "host/report.csv"), HasSubstr(",measured"));
}

TEST(HostRun, IsASubCommandOfTesseraToo) {
  const Outcome outcome = run({TESSERA_TOOL, "run", "--machine", "host", "--input-size=20",
                               "--output-size=20", "--density=0.5", "--json"});
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_EQ(json::parse(outcome.out)["tool"]["name"], "tessera run");
}

}  // namespace
}  // namespace tessera::inline v0::test
