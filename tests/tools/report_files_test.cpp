#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "tessera/base/random_matrix.hpp"
#include "tessera/io/array.hpp"
#include "tessera/io/npz.hpp"
#include "tessera/io/read.hpp"
#include "tessera/io/write.hpp"
#include "tessera/planner/plan_json.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/support/process.hpp"
#include "tessera/tests/tools/json_schema.hpp"

namespace tessera::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::vector<std::string> small(std::vector<std::string> more = {}) {
  std::vector<std::string> words{TESSERA_SPARSE_FC_LAYER, "--input-size=48", "--output-size=32",
                                 "--density=0.25", "--tiles-per-ipu=8"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

json schema() { return json::parse(read_file(TESSERA_SOURCE_DIR "/docs/report.schema.json")); }

TEST(Traces, HaveAllPassesOneAfterTheOther) {
  const TemporaryFolder folder;
  const Outcome all = run(small({"--quiet", "--trace=" + (folder / "all.json")}));
  ASSERT_EQ(all.exit, 0) << all.err;
  const json trace = json::parse(read_file(folder / "all.json"));
  EXPECT_EQ(trace["otherData"].size(), 3u);
  std::vector<double> begin(3, 1e9), end(3, 0);
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const auto pass = event["pid"].get<std::size_t>();
    begin[pass] = std::min(begin[pass], event["ts"].get<double>());
    end[pass] = std::max(end[pass], event["ts"].get<double>() + event["dur"].get<double>());
  }
  EXPECT_EQ(begin[0], 0);
  for (const std::size_t pass : {1u, 2u}) EXPECT_GE(begin[pass], end[pass - 1] - 1e-9);
  EXPECT_EQ(run(small({"--trace=" + (folder / "no/such/f.json")})).exit, 2);
}

TEST(Traces, ShowTheTilesThatAreAskedFor) {
  const TemporaryFolder folder;
  const std::string file = folder / "f.json";
  const Outcome two =
      run(small({"--quiet", "--single-phase=fwd", "--trace", file, "--trace-tiles=2:3"}));
  ASSERT_EQ(two.exit, 0) << two.err;
  std::set<std::string> names;
  const json trace = json::parse(read_file(file));
  for (const json& event : trace["traceEvents"])
    if (event["name"] == "thread_name") names.insert(event["args"]["name"]);
  EXPECT_EQ(names, (std::set<std::string>{"whole machine", "tile 2", "tile 3"}));
  for (const char* tiles : {"3:2", "-1", "a", "0:100000"})
    EXPECT_EQ(run(small({"--trace", file, std::string("--trace-tiles=") + tiles})).exit, 2)
        << tiles;
  EXPECT_EQ(run(small({"--trace-tiles=1"})).exit, 2) << "needs --trace";
}

TEST(ReportJson, FollowsTheSchemaInEveryKindOfRun) {
  for (const auto& more : std::vector<std::vector<std::string>>{
           {},
           {"--plan-only"},
           {"--report-tiles"},
           {"--ignore-data", "--single-phase=fwd"},
           {"--block-size=4", "--data-type=half", "--partials-type=half"},
           {R"(--matmul-options={"partitioner.forceBucketSpills":"true"})",
            R"(--plan-constraints={"partition":{"x":4,"y":2,"z":1}})"}}) {
    std::vector<std::string> words = small({"--json"});
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.exit, 0) << outcome.err;
    EXPECT_EQ(schema_breach(schema(), json::parse(outcome.out)), "");
  }
}

TEST(ReportJson, TheSchemaRefusesWhatIsNotAReport) {
  json report = json::parse(run(small({"--json"})).out);
  const auto breach = [&](const char* pointer, const json& value) {
    json changed = report;
    changed[json::json_pointer(pointer)] = value;
    return schema_breach(schema(), changed);
  };
  EXPECT_NE(breach("/schema_version", 2), "");
  EXPECT_NE(breach("/passes/0/cycles", "many"), "");
  EXPECT_NE(breach("/passes/0/steps/0/kind", "rest"), "");
  EXPECT_NE(breach("/total/moved_bytes", -1), "");
  EXPECT_NE(breach("/extra", 1), "");
  report.erase("seed");
  EXPECT_NE(schema_breach(schema(), report), "");
}

TEST(ReportJson, SaysWhatTheTableSaysAndHowItCameAbout) {
  const json report = json::parse(run(small({"--json", "--seed=7"})).out);
  const std::string table = run(small({"--seed=7"})).out;
  EXPECT_EQ(report["seed"], 7);
  EXPECT_EQ(report["status"], "passed");
  EXPECT_EQ(report["how"]["cycles"], "modelled");
  EXPECT_EQ(report["how"]["moved_bytes"], "counted");
  EXPECT_EQ(report["configuration"]["input-size"], 48);
  EXPECT_EQ(report["configuration"]["machine"], "gc200");
  std::int64_t total = 0;
  for (const json& pass : report["passes"]) {
    std::int64_t steps = 0, phases = 0;
    for (const json& step : pass["steps"])
      steps += step["cycles"].get<std::int64_t>() + step["overhead_cycles"].get<std::int64_t>();
    for (const json& phase : pass["phases"])
      for (const char* part :
           {"compute_cycles", "exchange_cycles", "control_cycles", "overhead_cycles"})
        phases += phase[part].get<std::int64_t>();
    EXPECT_EQ(steps, pass["cycles"]);
    EXPECT_EQ(phases, pass["cycles"]);
    total += steps;
  }
  EXPECT_EQ(report["total"]["cycles"], total);
  std::string digits = std::to_string(total);
  digits.insert(digits.size() - 3, ",");
  EXPECT_THAT(table, HasSubstr("PASS: " + digits + " modelled cycles"));
}

TEST(ReportJson, SaysWhatEachTileDidWhenAskedAndItAddsUp) {
  const json report = json::parse(run(small({"--json", "--report-tiles"})).out);
  for (const json& pass : report["passes"]) {
    const json& tiles = pass["tiles"];
    std::int64_t received = 0, slowest = 0, fullest = 0;
    for (const json& bytes : tiles["received_bytes"]) received += bytes.get<std::int64_t>();
    EXPECT_EQ(received, pass["moved_bytes"]);
    for (std::size_t tile = 0; tile < 8; ++tile) {
      fullest = std::max(fullest, tiles["memory_bytes"].at(tile).get<std::int64_t>());
      slowest = std::max(slowest, tiles["compute_cycles"].at(tile).get<std::int64_t>());
    }
    EXPECT_EQ(tiles["memory_bytes"][tiles["memory"]["fullest_tile"].get<std::size_t>()], fullest);
    EXPECT_LE(fullest, report["total"]["fullest_tile_bytes"]);
    EXPECT_LE(slowest, pass["cycles"]);
    const json& longest = pass["steps"][pass["imbalance"]["longest_step"].get<std::size_t>() - 1];
    EXPECT_EQ(longest["slowest_tile"], pass["imbalance"]["slowest_tile"]);
    for (const json& step : pass["steps"]) EXPECT_LE(step["cycles"], longest["cycles"]);
  }
  EXPECT_FALSE(json::parse(run(small({"--json"})).out)["passes"][0].contains("tiles"));
}

TEST(ReportCsv, HasARowForEachPassAndPhaseWithAsManyCellsAsTheHeading) {
  const json report = json::parse(run(small({"--json"})).out);
  std::size_t phases = 0;
  for (const json& pass : report["passes"]) phases += pass["phases"].size();
  std::istringstream lines(run(small({"--csv"})).out);
  std::string heading, line;
  std::getline(lines, heading);
  std::size_t rows = 0;
  for (; std::getline(lines, line); ++rows) {
    line.erase(0, line.find('"', 1) + 1);  // the source has commas of its own
    EXPECT_EQ(std::count(line.begin(), line.end(), ','),
              std::count(heading.begin(), heading.end(), ','))
        << line;
  }
  EXPECT_EQ(rows, phases);
}

TEST(OutputFolder, HoldsResultsThatAreThoseOfThePassAndAPlanThatServesAgain) {
  const TemporaryFolder folder;
  const auto weights = sparse::random_pattern(32, 48, {1, 1}, 0.25, 3);
  const Matrix<float> s = random_matrix<float>(48, 5, 9);
  io::write_mtx_file(folder / "w.mtx", weights);
  write_file(folder / "s.npy", io::write_npy(s.view()));
  const std::vector<std::string> words{
      TESSERA_SPARSE_FC_LAYER, "--matrix",          folder / "w.mtx",    "--input",
      folder / "s.npy",        "--data-type=float", "--tiles-per-ipu=8", "--output-dir",
      folder / "out"};
  const Outcome outcome = run(words);
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  const io::Array q = io::read_npy(read_file(folder / "out/q.npy"), "q");
  EXPECT_EQ(q.shape, (std::vector<std::int64_t>{32, 5}));
  const Matrix<float> dense = sparse::to_dense(weights);
  for (std::int64_t x = 0; x < 32; ++x)
    for (std::int64_t z = 0; z < 5; ++z) {
      double exact = 0;
      for (std::int64_t y = 0; y < 48; ++y) exact += double(dense(x, y)) * double(s(y, z));
      EXPECT_NEAR(q.values[std::size_t(x * 5 + z)], exact, 1e-5);
    }
  EXPECT_EQ(io::read_npy(read_file(folder / "out/s_gradient.npy"), "s").shape,
            (std::vector<std::int64_t>{48, 5}));
  if (io::can_read_npz()) {
    EXPECT_EQ(io::read_matrix(folder / "out/weight_gradient.npz").matrix.col, weights.col);
  }
  EXPECT_EQ(schema_breach(schema(), json::parse(read_file(folder / "out/report.json"))), "");
  std::filesystem::copy_file(folder / "out/plan.json",
                             folder / "plan.json");  // an output may not be an input, too
  auto again = words;
  again.insert(again.end(), {"--plan", folder / "plan.json"});
  EXPECT_EQ(run(again).out, outcome.out);
}

TEST(ValuesOfAFile, StandForThePatternsAndMustBeAsMany) {
  const TemporaryFolder folder;
  const auto weights = sparse::random_pattern(16, 16, {1, 1}, 0.25, 3);
  io::write_smtx_file(folder / "w.smtx", weights);
  io::write_mtx_file(folder / "w.mtx", weights);
  write_file(folder / "v.npy", io::write_npy(weights.values));
  const auto cycles = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{TESSERA_SPARSE_FC_LAYER, "--tiles-per-ipu=8", "--output-dir",
                                   folder / "out"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = run(words);
    return outcome.exit == 0 ? read_file(folder / "out/q.npy") : outcome.err;
  };
  EXPECT_EQ(cycles({"--matrix", folder / "w.smtx", "--values", folder / "v.npy"}),
            cycles({"--matrix", folder / "w.mtx"}));
  write_file(folder / "v.npy", io::write_npy(std::vector<float>{1, 2}));
  EXPECT_THAT(cycles({"--matrix", folder / "w.smtx", "--values", folder / "v.npy"}),
              HasSubstr("has 2 values; the pattern needs 64"));
}

// [[10 30], [20 0]] with its places stored column by column.
TEST(ValuesOfAFile, AreInTheOrderInWhichTheFileStoresThePlaces) {
  const TemporaryFolder folder;
  std::ofstream(folder / "columns.mtx") << "%%MatrixMarket matrix coordinate pattern general\n"
                                           "2 2 3\n1 1\n2 1\n1 2\n";
  std::ofstream(folder / "symmetric.mtx") << "%%MatrixMarket matrix coordinate pattern symmetric\n"
                                             "2 2 2\n2 1\n1 1\n";
  std::ofstream(folder / "own.mtx") << "%%MatrixMarket matrix coordinate real general\n"
                                       "1 1 1\n1 1 5\n";
  write_file(folder / "v.npy", io::write_npy(std::vector<float>{10, 20, 30}));
  write_file(folder / "two.npy", io::write_npy(std::vector<float>{10, 20}));
  Matrix<float> one(2, 2);
  one(0, 0) = one(1, 1) = 1;
  write_file(folder / "s.npy", io::write_npy(std::as_const(one).view()));
  const auto weights = [&](const char* matrix, const char* values) {
    const Outcome outcome = run({TESSERA_SPARSE_FC_LAYER, "--tiles-per-ipu=1", "--data-type=float",
                                 "--matrix", folder / matrix, "--values", folder / values,
                                 "--input", folder / "s.npy", "--output-dir", folder / "out"});
    EXPECT_EQ(outcome.exit, 0) << outcome.err;
    return io::read_npy(read_file(folder / "out/q.npy"), "q").values;
  };
  EXPECT_EQ(weights("columns.mtx", "v.npy"), (std::vector<double>{10, 30, 20, 0}));
  EXPECT_EQ(weights("symmetric.mtx", "two.npy"), (std::vector<double>{20, 10, 10, 0}));
  const Outcome own =
      run({TESSERA_SPARSE_FC_LAYER, "--matrix", folder / "own.mtx", "--values", folder / "v.npy"});
  EXPECT_EQ(own.exit, 2);
  EXPECT_THAT(own.err, HasSubstr("own.mtx has values of its own"));
}

TEST(DrawnPattern, IsRefusedAboveTheLimitsWithTheOptionsThatAskForIt) {
  const Outcome outcome = run({TESSERA_SPARSE_FC_LAYER, "--input-size=100", "--output-size=20000",
                               "--block-size=4096", "--pattern=1:100000", "--batch-size=100"});
  EXPECT_EQ(outcome.exit, 4);
  EXPECT_THAT(outcome.err, HasSubstr("--output-size 20000 --input-size 100 --block-size 4096"));
  EXPECT_THAT(outcome.err, HasSubstr("values; the limit is"));
}

TEST(Quiet, PrintsNothingAndVerboseNamesEveryOption) {
  const Outcome quiet = run(small({"--quiet"}));
  EXPECT_EQ(quiet.out + quiet.err, "");
  EXPECT_EQ(quiet.exit, 0);
  const Outcome verbose = run(small({"-v", "-q"}));
  EXPECT_EQ(verbose.out, "");
  EXPECT_THAT(verbose.err, HasSubstr("sparse_fc_layer: --density 0.25\n"));
}

TEST(ConfigFile, GivesOptionsThatTheCommandLineGoesBefore) {
  const TemporaryFolder folder;
  std::ofstream(folder / "c") << "input-size = 48\noutput-size = 32\ndensity = 0.5\n"
                              << "tiles-per-ipu = 8\n";
  const Outcome outcome =
      run({TESSERA_SPARSE_FC_LAYER, "--config", folder / "c", "--density=0.25"});
  EXPECT_EQ(outcome.out, run(small()).out) << outcome.err;
  std::ofstream(folder / "c") << "no-such-option = 48\n";
  EXPECT_EQ(run({TESSERA_SPARSE_FC_LAYER, "--config", folder / "c"}).exit, 2);
}

// Starts a run of some seconds in its own process and interrupts it after `seconds`.
Outcome interrupted_run(const std::string& out, const std::string& seconds) {
  const std::string script =
      "exec \"$0\" --input-size=2048 --output-size=2048 --density=0.3 --batch-size=256 --json "
      "--output-dir \"$1\" > \"$1.json\" & sleep $2; kill -INT $!; wait $!";
  return run({"/bin/bash", "-c", script, TESSERA_SPARSE_FC_LAYER, out, seconds});
}

// An interrupt before the first pass leaves no report, so busy computers need a longer wait.
TEST(Interrupt, LeavesAValidPartialReport) {
  for (const char* seconds :
       {"0.3", "0.6", "1", "1.5", "2", "2.5", "3", "4", "6", "9", "14", "25"}) {
    const TemporaryFolder folder;
    const Outcome outcome = interrupted_run(folder / "out", seconds);
    const std::string text = read_file(folder / "out.json");
    if (text.empty() || outcome.exit == 0) continue;  // before the first pass, or after the last
    EXPECT_EQ(outcome.exit, 130) << outcome.err;
    const json report = json::parse(text);
    EXPECT_EQ(report["status"], "partial");
    EXPECT_THAT(report["notes"].dump(), HasSubstr("interrupted: "));
    EXPECT_LT(report["passes"].size(), 3u);
    EXPECT_EQ(schema_breach(schema(), report), "");
    return;
  }
  FAIL() << "no report after any wait";
}

}  // namespace
}  // namespace tessera::test
