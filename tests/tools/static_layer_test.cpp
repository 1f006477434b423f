// Layers whose pattern stays, in the programs.
#include "tessera/study/static_layer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tessera/io/write.hpp"
#include "tessera/planner/static_plan.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/support/process.hpp"
#include "tessera/tests/support/shared_data.hpp"
#include "tessera/tests/support/temporary_folder.hpp"
#include "tessera/tools/page/report_page.hpp"

namespace tessera::test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

Outcome layer(std::vector<std::string> more) {
  std::vector<std::string> words{TESSERA_SPARSE_FC_LAYER, "--static",      "--input-size=96",
                                 "--output-size=64",      "--density=0.2", "--batch-size=20",
                                 "--tiles-per-ipu=16"};
  words.insert(words.end(), more.begin(), more.end());
  return run(words);
}

Outcome plan(std::vector<std::string> more) {
  std::vector<std::string> words{TESSERA_TOOL,      "plan",
                                 "--static",        "--input-size=96",
                                 "--density=0.2",   "--output-size=64",
                                 "--batch-size=20", "--tiles-per-ipu=16"};
  words.insert(words.end(), more.begin(), more.end());
  return run(words);
}

TEST(StaticFcLayer, VerifiesAllPassesAndRunsForThePlannedCycles) {
  for (const char* block : {"1", "4", "8", "16", "6,3", "32"})
    for (const char* type : {"half", "float", "bfloat16"}) {
      SCOPED_TRACE(std::string(block) + " " + type);
      const Outcome outcome = layer(
          {std::string("--block-size=") + block, std::string("--data-type=") + type, "--json"});
      ASSERT_EQ(outcome.exit, 0) << outcome.err;
      const auto report = nlohmann::json::parse(outcome.out);
      EXPECT_EQ(report["total"]["cycles"], report["total"]["planned_cycles"]);
      ASSERT_EQ(report["passes"].size(), 3u);
      for (const auto& pass : report["passes"]) EXPECT_EQ(pass["check"]["wrong"], 0);
      EXPECT_GT(report["planned"]["plan"]["tiles"], 0);
    }
}

TEST(StaticFcLayer, PrintsThePlanAndTheOtherLayers) {
  const Outcome outcome = layer({"--single-phase=fwd", "--report-plan", "--block-size=4"});
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("static pattern; "));
  EXPECT_THAT(outcome.out, HasSubstr("a plan for patterns that may change takes "));
  EXPECT_THAT(outcome.out, HasSubstr("\nPASS: "));
  EXPECT_THAT(outcome.out, HasSubstr("\nstatic     half, "));
  EXPECT_THAT(outcome.out, Not(HasSubstr("spilled")));
  EXPECT_THAT(layer({"--block-size=6,3"}).out, HasSubstr("6x3 blocks; they run as elements"));
}

TEST(StaticFcLayer, WritesAPageOfItsReport) {
  if (!tools::can_make_pages()) GTEST_SKIP() << "built without the chart library";
  const TemporaryFolder folder;
  const Outcome outcome = layer({"--block-size=4", "--quiet", "--html", folder / "page.html"});
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  std::ifstream file(folder / "page.html");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(page, HasSubstr("\"z_parts\":"));
  EXPECT_THAT(page, HasSubstr("bands of block columns"));
}

TEST(StaticFcLayer, RefusesOptionsThatHaveNoMeaning) {
  const auto refused = [](std::vector<std::string> more) {
    const Outcome outcome = layer(std::move(more));
    EXPECT_EQ(outcome.exit, 2);
    return outcome.err;
  };
  EXPECT_THAT(refused({"--spilling=greedy"}), HasSubstr("there are no buckets"));
  EXPECT_THAT(refused({"--plan-constraints={}"}), HasSubstr("--plan-constraints"));
  EXPECT_THAT(refused({"--partials-type=half"}), HasSubstr("sums have the type of the data"));
  EXPECT_THAT(refused({"--block-size=auto"}), HasSubstr("omit it with --static"));
  EXPECT_THAT(refused({R"(--matmul-options={"metaInfoBucketOversizeProportion": 1})"}),
              HasSubstr("a static plan has no buckets"));
  const Outcome host = run({TESSERA_SPARSE_FC_LAYER, "--static", "--input-size=8",
                            "--output-size=8", "--density=1", "--machine=host"});
  EXPECT_EQ(host.exit, 2);
  EXPECT_THAT(host.err, HasSubstr("--machine"));
}

TEST(StaticPlanCommand, PrintsThePlanOfTheLibrary) {
  const Outcome outcome = plan({"--block-size=4", "--json", "--explain"});
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  const auto matrix = sparse::random_pattern(64, 96, {4, 4}, 0.2, 1);
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = 16;
  Problem problem{.size = {1, 64, 96, 20}, .block = {4, 4}, .grad_a = true, .grad_w = true};
  const auto expected =
      planner::plan_static(problem, study::block_pattern(matrix), machine).plan.value();
  EXPECT_EQ(json["plan"], nlohmann::json::parse(planner::to_json(expected)));
  EXPECT_LE(json["explanation"]["bounds"]["kernel"],
            json["plan"]["cost"]["passes"][0]["terms"].size() * 1'000'000);
  EXPECT_GE(json["explanation"]["poplibs"]["counted_cycles"], json["plan"]["cost"]["cycles"]);
  EXPECT_FALSE(json["explanation"]["runner_ups"].empty());
}

TEST(StaticPlanCommand, ExplainsTermsBoundsAndTheCutsThatCameNext) {
  const Outcome outcome = plan({"--explain"});
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  for (const char* part :
       {"note       the pattern is drawn at random, seed 1", "static     half, ", "terms\n  Fwd",
        "  GradA ", "  GradW ", "bounds     ", "  kernel   ", "next       of ", "PopLibs    "})
    EXPECT_THAT(outcome.out, HasSubstr(part));
  EXPECT_THAT(plan({"--cost-model=popsparse"}).out, HasSubstr("static     half, "));
}

TEST(StaticPlanCommand, TakesThePatternOfAFile) {
  const TemporaryFolder folder;
  io::write_smtx_file(folder / "w.smtx", sparse::random_pattern(96, 64, {1, 1}, 0.1, 3));
  const Outcome outcome = run({TESSERA_TOOL, "plan", "--static", "--matrix", folder / "w.smtx",
                               "--batch-size=16", "--tiles-per-ipu=16"});
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_THAT(outcome.out, Not(HasSubstr("seed 1")));
}

TEST(StaticPlanCommand, RefusesWhatItCannotPlan) {
  EXPECT_EQ(plan({"--groups=2"}).exit, 2);
  EXPECT_EQ(plan({"--plan-cache=x"}).exit, 2);
  const Outcome none = plan({R"(--matmul-options={"availableMemoryProportion": 0.00001})"});
  EXPECT_EQ(none.exit, 4);
  EXPECT_THAT(none.err, HasSubstr("no static plan"));
}

TEST(Studies, HaveALineForPatternsThatStay) {
  const std::vector<std::string> size{"--input-size=128", "--output-size=96", "--batch-size=16",
                                      "--single-phase=fwd", "--tiles-per-ipu=16"};
  const auto with = [&](std::vector<std::string> words) {
    words.insert(words.begin(), TESSERA_TOOL);
    words.insert(words.end(), size.begin(), size.end());
    return run(words);
  };
  const Outcome crossover = with({"crossover", "--block-size=4", "--json"});
  ASSERT_EQ(crossover.exit, 0) << crossover.err;
  const auto study = nlohmann::json::parse(crossover.out);
  EXPECT_GT(study["blocks"][0]["static_crossover_density"],
            study["blocks"][0]["crossover_density"]);
  EXPECT_THAT(study["verdict"], HasSubstr("static up to "));
  EXPECT_EQ(study["curve"].back()["block"], "4x4 static");
  const Outcome sweep = with({"sweep", "--over=density=0.05,0.1", "--json"});
  ASSERT_EQ(sweep.exit, 0) << sweep.err;
  const auto swept = nlohmann::json::parse(sweep.out);
  for (const auto& point : swept["points"]) EXPECT_LT(point["static_cycles"], point["cycles"]);
}

namespace fs = std::filesystem;

std::vector<fs::path> patterns_below(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string ending = entry.path().extension();
    const bool is_pattern = ending == ".smtx" || ending == ".mtx";
    if (is_pattern && entry.path().filename() != "young1c.mtx")  // has complex values
      found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

void expect_all_right(const std::vector<fs::path>& files) {
  for (const fs::path& file : files)
    for (const char* type : {"half", "float"}) {
      const Outcome outcome = run({TESSERA_SPARSE_FC_LAYER, "--static", "--matrix", file.string(),
                                   "--batch-size=9", "--tiles-per-ipu=200", "--data-type", type,
                                   "--block-size", type == std::string("half") ? "4" : "1"});
      EXPECT_EQ(outcome.exit, 0) << file.filename() << " " << type << ": " << outcome.err
                                 << outcome.out;
    }
}

TEST(StaticFcLayer, IsRightForThePatternsThatAreShipped) {
  const auto files = patterns_below(TESSERA_SOURCE_DIR "/tests/data/matrices");
  EXPECT_FALSE(files.empty());
  expect_all_right(files);
}

#ifndef TESSERA_SANITIZED  // takes ten times as long there
TEST(StaticFcLayer, IsRightForThePatternsOfTrainedLayers) {
  TESSERA_NEED_SHARED(shared);
  std::vector<fs::path> files;
  for (const char* folder : {"dlmc", "mediapipe", "mtx", "swin"})
    for (const fs::path& file : patterns_below(shared / "data" / folder)) files.push_back(file);
  EXPECT_GE(files.size(), 33u);
  expect_all_right(files);
}
#endif

// The grid of command lines by which PopLibs tests its own program.
std::vector<std::vector<std::string>> peer_command_lines(const std::string& mask) {
  struct Shape {
    int m, k, n;
    const char* density;
  };
  std::vector<std::vector<std::string>> lines;
  for (const char* type : {"half", "float"})
    for (const int block : {1, 4, 8, 16})
      for (const auto& [m, k, n, density] : {Shape{block, block, 1, "1"}, Shape{64, 64, 32, "1"},
                                             Shape{512, 64, 8, "0.01"}, Shape{512, 64, 13, "0.1"}})
        lines.push_back({"--data-type", type, "--block-length", std::to_string(block), "--m",
                         std::to_string(m), "--k", std::to_string(k), "--n", std::to_string(n),
                         "--sparsity-factor", density, "--tiles-per-ipu", "4"});
  lines.push_back({"--m=512", "--k=8", "--n=7", "--sparsity-factor=0.1", "--tiles-per-ipu=4",
                   "--available-memory-proportion=0.45", "--num-column-bands=2", "--n-split=1"});
  lines.push_back({"--m=64", "--k=64", "--n=4", "--sparsity-factor=0.0001", "--tiles-per-ipu=4"});
  lines.push_back(
      {"--sparsity-matrix-file", mask, "--n=8", "--do-dense-sparse", "true", "--tiles-per-ipu=1"});
  return lines;
}

// Returns a mask of that size with so many ones, all in one line.
std::string drawn_mask(std::int64_t rows, std::int64_t cols, std::int64_t ones) {
  std::vector<char> places(std::size_t(rows * cols), '0');
  for (const std::int64_t place : sparse::random_choice(rows * cols, ones, 7))
    places[std::size_t(place)] = '1';
  std::string text = std::to_string(rows) + " " + std::to_string(cols);
  for (const char place : places) text += std::string(" ") + place;
  return text;
}

TEST(StaticSparseMatMul, RunsThePeersThirtyFiveCommandLines) {
  const TemporaryFolder folder;
  std::ofstream(folder / "mask") << drawn_mask(129, 52, 1375);
  const auto lines = peer_command_lines(folder / "mask");
  EXPECT_EQ(lines.size(), 35u);
  for (std::vector<std::string> words : lines) {
    words.insert(words.begin(), TESSERA_STATIC_SPARSE_MATMUL);
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.exit, 0) << testing::PrintToString(words) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("Fwd     ok: "));
  }
}

TEST(StaticSparseMatMul, WritesTheMaskThatItRead) {
  const TemporaryFolder folder;
  std::ofstream(folder / "mask") << "2 3\n1 0 1\n0 1 0\n";
  for (const char* dense_sparse : {"false", "true"}) {
    const Outcome outcome =
        run({TESSERA_STATIC_SPARSE_MATMUL, "--sparsity-matrix-file", folder / "mask", "--n=4",
             "--block-length=4", "--do-dense-sparse", dense_sparse, "--tiles-per-ipu=4",
             "--output-sparsity-matrix-file", folder / "again"});
    EXPECT_EQ(outcome.exit, 0) << outcome.err;
    std::ifstream again(folder / "again");
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(again), {}), "2 3\n1 0 1\n0 1 0\n");
  }
  EXPECT_EQ(run({TESSERA_STATIC_SPARSE_MATMUL, "--sparsity-matrix-file", folder / "mask", "--n=4",
                 "--m=7"})
                .exit,
            2);
  EXPECT_EQ(run({TESSERA_TOOL, "run", "--mask-file", folder / "mask"}).exit, 2)
      << "a mask of blocks is for --static";
}

TEST(StaticSparseMatMul, IsRunStaticWithOtherNames) {
  const Outcome theirs =
      run({TESSERA_STATIC_SPARSE_MATMUL, "--m=32", "--k", "16", "--n=4", "--block-length", "4",
           "--sparsity-factor=0.5", "--available-memory-proportion", "0.45", "--verbose",
           "--device-type=IpuModel", "--tiles-per-ipu=4"});
  const Outcome ours =
      run({TESSERA_TOOL, "run", "--static", "--single-phase=fwd", "--output-size=32",
           "--input-size=16", "--batch-size=4", "--block-size=4", "--sparsity-factor=0.5",
           R"(--matmul-options={"availableMemoryProportion": 0.45})", "--report-plan",
           "--machine=mk1", "--tiles-per-ipu=4"});
  EXPECT_EQ(theirs.exit, 0) << theirs.err;
  EXPECT_EQ(theirs.out, ours.out);
  EXPECT_THAT(theirs.err, HasSubstr("--device-type means --machine mk1 here"));
}

}  // namespace
}  // namespace tessera::test
