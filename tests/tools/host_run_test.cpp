#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>
#include <thread>
#include <utility>

#include "tessera/base/random_matrix.hpp"
#include "tessera/io/array.hpp"
#include "tessera/io/write.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/support/process.hpp"
#include "tessera/tests/tools/json_schema.hpp"

namespace tessera::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

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
  for (const char* more :
       {"--single-phase=all", "--plan-only", "--ignore-data", "--dense=always", "--dense=auto"}) {
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
       {"--tiles-per-ipu=8", "--spilling=greedy", "--isolate", "--inject=tile=0,step=0,bit=0",
        "--compile-only", "--trace=f.json", "--report-tiles", "--profile", "--report-plan",
        "--report-total-cycle-counts", "--report-dense-gradw-serial-splits", "--plan-cache=d",
        "--on-no-fit=best-effort", "--plan-constraints={}", "--plan=f",
        R"(--matmul-options={"metaInfoBucketOversizeProportion":0.5})"}) {
    std::vector<std::string> words = on_host({option});
    const std::string name = std::string(option).substr(0, std::string(option).find('='));
    for (const bool is_command : {false, true}) {
      if (is_command) words[0] = TESSERA_TOOL, words.insert(words.begin() + 1, "run");
      const Outcome outcome = run(words);
      EXPECT_EQ(outcome.exit, 2) << option;
      EXPECT_THAT(outcome.out + outcome.err,
                  HasSubstr(name + ": applies only to modelled machines with tiles; omit it"))
          << option;
    }
  }
}

TEST(HostRun, SelfCheckSaysThatResultsOfEveryPassAddUp) {
  for (const char* more : {"--single-phase=all", "--data-type=float", "--block-size={3,5}",
                           "--dense=always", "--ignore-data"}) {
    const Outcome outcome = run(on_host({"--self-check", more}));
    EXPECT_EQ(outcome.exit, 0) << outcome.err;
    for (const char* pass : {"Fwd", "GradA", "GradW"})
      EXPECT_THAT(outcome.out, HasSubstr(std::string("note      self-check of ") + pass + ": ok: "))
          << more;
  }
  EXPECT_THAT(run(on_host()).out, Not(HasSubstr("self-check")));
}

TEST(HostRun, SelfCheckSumsEveryColumnAndIsInTheNotesOfJson) {
  const json report = json::parse(run(on_host({"--json", "--self-check"})).out);
  EXPECT_EQ(schema_breach(schema(), report), "");
  std::vector<std::string> notes;
  for (const std::string note : report["notes"])
    if (note.starts_with("self-check")) notes.push_back(note.substr(0, note.find(',')));
  EXPECT_THAT(notes, testing::ElementsAre("self-check of Fwd: ok: 7 checksums",
                                          "self-check of GradA: ok: 7 checksums",
                                          "self-check of GradW: ok: 34 checksums"));
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
  for (const std::string type : {"float", "half", "bfloat16"}) {
    const Outcome outcome = run(on_host({"--data-type=" + type, "--block-size=4", "--dense=auto"}));
    EXPECT_EQ(outcome.exit, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("PASS"));
  }
  const Outcome sums = run(on_host({"--partials-type=half", "--block-size=4", "--data-type=half"}));
  EXPECT_EQ(sums.exit, 2);
  EXPECT_THAT(sums.err, HasSubstr("partial sums of type half are not supported"));
}

TEST(HostRun, GivesTheResultsOfTheModelledMachineFromFiles) {
  const TemporaryFolder folder;
  io::write_mtx_file(folder / "w.mtx", sparse::random_pattern(32, 48, {1, 1}, 0.25, 3));
  const Matrix<float> s = random_matrix<float>(48, 5, 9);
  write_file(folder / "s.npy", io::write_npy(s.view()));
  for (const char* machine : {"gc200", "host"}) {
    const Outcome outcome =
        run({TESSERA_SPARSE_FC_LAYER, "--matrix=" + (folder / "w.mtx"),
             "--input=" + (folder / "s.npy"), "--data-type=float", "--single-phase=fwd",
             std::string("--machine=") + machine, "--output-dir=" + (folder / machine)});
    EXPECT_EQ(outcome.exit, 0) << outcome.err;
  }
  const auto result = [&](const std::string& machine) {
    const std::string path = folder / machine + "/q.npy";
    return io::read_npy(read_file(path), path);
  };
  const io::Array modelled = result("gc200"), measured = result("host");
  EXPECT_EQ(measured.shape, modelled.shape);
  for (std::size_t i = 0; i < measured.values.size(); ++i)
    EXPECT_NEAR(measured.values[i], modelled.values[i], 1e-5);
  EXPECT_EQ(schema_breach(schema(), json::parse(read_file(folder / "host/report.json"))), "");
  EXPECT_THAT(read_file(folder / "host/report.csv"), HasSubstr(",measured"));
}

TEST(HostRun, EndsInAVerdictAgainstTheFastestDenseProduct) {
  const Outcome text = run(on_host({}));
  // On a computer that does something else meanwhile, there is none.
  EXPECT_THAT(text.out, testing::ContainsRegex(
                            "\nverdict +(none: the times differ|(dense wins: |about equal, "
                            "keep R dense: )?Fwd [0-9.]+ ms, .*dense \\([0-9.]+, "
                            ".*(float|half)\\))"));
  EXPECT_THAT(text.out, testing::ContainsRegex("\nprocessor time [0-9]+ % of wall time; load "));
  EXPECT_THAT(text.out, HasSubstr("measured, +-"));
  const json verdict = json::parse(run(on_host({"--json"})).out)["verdict"];
  EXPECT_GT(verdict["dense_seconds"], 0);
  EXPECT_EQ(verdict["passes"].size(), 3u);
  // Measured and forecast costs are in clauses of their own.
  const std::string words = verdict["text"];
  const std::size_t measured = words.find("(measured"), forecast = words.find("forecast: ");
  if (forecast != std::string::npos) {
    EXPECT_LT(measured, forecast) << words;
  }
  EXPECT_TRUE(json::parse(run(on_host({"--json", "--dense=always"})).out)["verdict"].is_null());
  EXPECT_THAT(run(on_host({"--plan-only"})).out, Not(HasSubstr("verdict")));
}

TEST(HostRun, ReadsDQAndKeepsBothOperands) {
  const TemporaryFolder folder;
  const std::vector<std::string> layer{"--input-size=6", "--output-size=4", "--density=0.5",
                                       "--data-type=float"};
  const auto run_layer = [&](const std::string& machine, std::vector<std::string> more) {
    more.insert(more.begin(), layer.begin(), layer.end());
    more.insert(more.begin(), {TESSERA_SPARSE_FC_LAYER, "--machine", machine});
    return run(more);
  };
  Matrix<float> gradient(4, 3);
  std::iota(gradient.elements().begin(), gradient.elements().end(), 1.0F);
  const std::string file = folder.write("dq.npy", io::write_npy(std::as_const(gradient).view()));
  for (const char* machine : {"mk1", "host"}) {
    const Outcome outcome =
        run_layer(machine, {"--output-gradient", file, "--output-dir", folder / machine});
    ASSERT_EQ(outcome.exit, 0) << outcome.err;
    const std::string kept = folder / machine + "/q_gradient.npy", s = folder / machine + "/s.npy";
    EXPECT_EQ(read_file(kept), read_file(file));
    EXPECT_EQ(io::read_npy(read_file(s), s).shape, (std::vector<std::int64_t>{6, 3}));
    // The same S and dQ give the same results.
    const Outcome again = run_layer(
        machine, {"--input", s, "--output-gradient", file, "--output-dir", folder / "again"});
    ASSERT_EQ(again.exit, 0) << again.err;
    EXPECT_EQ(read_file(folder / "again/s_gradient.npy"),
              read_file(folder / machine + "/s_gradient.npy"));
  }
  EXPECT_EQ(run_layer("host", {"--output-gradient", file, "--single-phase=fwd"}).exit, 2);
  EXPECT_EQ(run_layer("host", {"--output-gradient", file, "--batch-size=3"}).exit, 2);
  const Matrix<float> narrow(6, 2);
  const std::string other = folder.write("s.npy", io::write_npy(narrow.view()));
  const Outcome differ = run_layer("host", {"--input", other, "--output-gradient", file});
  EXPECT_EQ(differ.exit, 3);
  EXPECT_THAT(differ.err, HasSubstr("dQ has 3 columns, but S in"));
}

TEST(HostRun, IsASubCommandOfTesseraToo) {
  const Outcome outcome = run({TESSERA_TOOL, "run", "--machine", "host", "--input-size=20",
                               "--output-size=20", "--density=0.5", "--json"});
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  const json report = json::parse(outcome.out);
  EXPECT_EQ(report["tool"]["name"], "tessera run");
  EXPECT_EQ(report["configuration"]["input-size"], 20);
}

// A report of the same layer on a machine.
std::string report_of(const TemporaryFolder& folder, const std::string& name,
                      const std::vector<std::string>& more) {
  std::vector<std::string> words{TESSERA_SPARSE_FC_LAYER, "--input-size=50", "--output-size=34",
                                 "--density=0.3", "--json"};
  words.insert(words.end(), more.begin(), more.end());
  return folder.write(name, run(words).out);
}

TEST(HostCompare, HoldsAMeasuredReportBesideAModelledOneByTime) {
  const TemporaryFolder folder;
  const std::string host = report_of(folder, "host.json", {"--machine=host"});
  const std::string modelled = report_of(folder, "model.json", {"--tiles-per-ipu=8"});
  const Outcome both = run({TESSERA_TOOL, "compare", modelled, host, "--threshold", "1e9"});
  EXPECT_EQ(both.exit, 0) << both.err;
  EXPECT_THAT(both.out, HasSubstr("before: modelled on gc200; after: measured on "));
  for (const char* figure : {"total microseconds", "Fwd microseconds", "GradW microseconds"})
    EXPECT_THAT(both.out, HasSubstr(figure));
  EXPECT_THAT(both.out, Not(HasSubstr("cycles ")));
  EXPECT_EQ(run({TESSERA_TOOL, "compare", modelled, modelled}).exit, 0);
}

TEST(HostCompare, ExitsWithOneWhenTimeGrewMoreThanTheThreshold) {
  const TemporaryFolder folder;
  const std::string host = report_of(folder, "host.json", {"--machine=host"});
  json slower = json::parse(read_file(host));
  slower["total"]["seconds"] = 2 * slower["total"]["seconds"].get<double>();
  const std::string twice = folder.write("twice.json", slower.dump());
  EXPECT_EQ(run({TESSERA_TOOL, "compare", host, twice, "--threshold", "50"}).exit, 1);
  EXPECT_EQ(run({TESSERA_TOOL, "compare", host, twice, "--threshold", "150"}).exit, 0);
  EXPECT_EQ(run({TESSERA_TOOL, "compare", host, host}).exit, 0);
}

TEST(HostRun, DenseIsRightAndSaidInTheReport) {
  for (const char* type : {"--data-type=float", "--data-type=half"}) {
    const json report = json::parse(run(on_host({"--json", "--dense=always", type})).out);
    EXPECT_EQ(report["status"], "passed");
    for (const json& pass : report["passes"]) EXPECT_EQ(pass["method"], "dense");
  }
  EXPECT_EQ(json::parse(run(on_host({"--json"})).out)["passes"][0]["method"], "sparse");
  const Outcome modelled = run({TESSERA_SPARSE_FC_LAYER, "--input-size=8", "--output-size=8",
                                "--density=0.5", "--dense=auto"});
  EXPECT_EQ(modelled.exit, 2);
  EXPECT_THAT(modelled.err + modelled.out, HasSubstr("applies only with --machine host"));
}

TEST(HostBatch, RunsProblemsOfThisComputerToo) {
  const TemporaryFolder folder;
  const std::string batch = folder.write(
      "b.txt", "--machine host --input-size 20 --output-size 20 --density 0.5 --batch-size 4\n");
  const Outcome outcome = run({TESSERA_TOOL, "bench", "--batch", batch});
  EXPECT_EQ(outcome.exit, 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("PASSED"));
}

}  // namespace
}  // namespace tessera::test
