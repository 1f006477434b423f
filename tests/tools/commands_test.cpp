#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "tessera/base/random_matrix.hpp"
#include "tessera/io/array.hpp"
#include "tessera/io/npz.hpp"
#include "tessera/io/read.hpp"
#include "tessera/io/stored_type.hpp"
#include "tessera/io/write.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/support/process.hpp"

namespace tessera::test {
namespace {

using testing::HasSubstr;
using testing::Not;

Outcome tessera(std::vector<std::string> words) {
  words.insert(words.begin(), TESSERA_TOOL);
  return run(words);
}

const std::string kLayer = "--input-size=48 --output-size=32 --density=0.25 --tiles-per-ipu=8";

TEST(RunCommand, DoesWhatSparseFcLayerDoes) {
  const std::vector<std::string> words{"--input-size=48", "--output-size=32", "--dens=0.25",
                                       "--tiles-per-ipu=8"};
  auto as_tool = words, as_command = words;
  as_tool.insert(as_tool.begin(), TESSERA_SPARSE_FC_LAYER);
  as_command.insert(as_command.begin(), "run");
  EXPECT_EQ(tessera(as_command).out, run(as_tool).out);
  EXPECT_EQ(tessera({"run", "--input-size=48"}).exit, 2);
  const Outcome bare = tessera({"run"});
  EXPECT_EQ(bare.exit, 2);
  EXPECT_THAT(bare.err + bare.out, testing::HasSubstr("--matrix"));
}

TEST(ConvertCommand, EveryFormatHoldsTheSameMatrix) {
  const TemporaryFolder folder;
  const auto matrix = sparse::random_pattern(12, 10, {1, 1}, 0.3, 5);
  io::write_mtx_file(folder / "0.mtx", matrix);
  std::vector<std::string> names{"0.mtx", "1.npy", "2.safetensors", "3.mtx"};
  if (io::can_read_npz()) names.push_back("4.npz");
  for (std::size_t i = 1; i < names.size(); ++i) {
    const Outcome outcome = tessera({"convert", folder / names[i - 1], folder / names[i]});
    EXPECT_EQ(outcome.exit, 0) << outcome.err;
    EXPECT_EQ(io::read_matrix(folder / names[i]).matrix, sparse::cast<double>(matrix));
  }
  EXPECT_EQ(tessera({"convert", folder / "0.mtx", folder / "5.xls"}).exit, 2);
  EXPECT_EQ(tessera({"convert", folder / "none.mtx", folder / "5.mtx"}).exit, 3);
}

TEST(ConvertCommand, KeepsTheTypeOfItsInput) {
  const TemporaryFolder folder;
  const auto weights = random_matrix<float>(6, 4, 1);
  Matrix<Half> halves(6, 4);
  std::ranges::transform(weights.elements(), halves.elements().begin(),
                         [](float value) { return Half(value); });
  folder.write("f.npy", io::write_npy(std::as_const(weights).view()));
  folder.write("h.npy", io::write_npy(std::as_const(halves).view()));
  folder.write("p.smtx", "2, 2, 1\n0 1 1\n0\n");
  const auto type_after = [&](const std::string& from, const std::string& to) {
    const Outcome outcome = tessera({"convert", folder / from, folder / to});
    EXPECT_EQ(outcome.exit, 0) << outcome.err;
    return io::stored_type(folder / to);
  };
  EXPECT_EQ(type_after("f.npy", "f.safetensors"), io::ElementType::F32);
  EXPECT_EQ(type_after("h.npy", "h.safetensors"), io::ElementType::F16);
  EXPECT_EQ(type_after("h.safetensors", "h2.npy"), io::ElementType::F16);
  if (io::can_read_npz()) {
    EXPECT_EQ(type_after("f.npy", "f.npz"), io::ElementType::F32);
    EXPECT_EQ(type_after("f.npz", "f2.npy"), io::ElementType::F32);
  }
  type_after("p.smtx", "p.mtx");
  EXPECT_THAT(read_file(folder / "p.mtx"), HasSubstr("coordinate pattern general"));
}

TEST(ConvertCommand, AddsUpPlacesThatAreGivenTwiceIfAsked) {
  const TemporaryFolder folder;
  const std::string file = folder.write(
      "w.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 1.5\n2 2 4\n1 1 2\n");
  EXPECT_EQ(tessera({"convert", file, folder / "o.mtx"}).exit, 3);
  const Outcome outcome = tessera({"convert", file, folder / "o.mtx", "--sum-duplicates"});
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  const auto matrix = io::read_matrix(folder / "o.mtx").matrix;
  EXPECT_EQ(matrix.values, (std::vector<double>{3.5, 4}));
  const std::string pattern =
      folder.write("p.mtx", "%%MatrixMarket matrix coordinate pattern general\n2 2 2\n1 1\n1 1\n");
  EXPECT_EQ(tessera({"convert", pattern, folder / "q.mtx", "--sum-duplicates"}).exit, 0);
  EXPECT_EQ(io::read_matrix(folder / "q.mtx").matrix.values, std::vector<double>{1});
}

TEST(ConvertCommand, WritesPatternsOfMtxFilesWithoutTheMatrix) {
  const TemporaryFolder folder;
  const std::string banner = "%%MatrixMarket matrix coordinate real symmetric\n";
  const std::string file = folder.write("w.mtx", banner + "3 3 3\n3 3 4\n2 1 1.5\n3 1 2\n");
  const Outcome outcome = tessera({"convert", file, folder / "w.SMTX", "--memory", "64"});
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("w.SMTX: 3 x 3, 5 stored; pattern only"));
  EXPECT_EQ(read_file(folder / "w.SMTX"), io::write_smtx(io::read_matrix(file).matrix));
  const std::string twice = folder.write("t.mtx", banner + "3 3 2\n2 1 1\n1 2 1\n");
  EXPECT_EQ(tessera({"convert", twice, folder / "t.smtx"}).exit, 3);
  EXPECT_FALSE(std::filesystem::exists(folder / "t.smtx"));
  EXPECT_EQ(tessera({"convert", twice, folder / "t.smtx", "--sum-duplicates"}).exit, 0);
  EXPECT_EQ(read_file(folder / "t.smtx"), "3, 3, 2\n0 1 2 2\n1 0\n");
  const std::string empty = folder.write("e.mtx", banner + "0 0 0\n");
  EXPECT_EQ(tessera({"convert", empty, folder / "e.smtx"}).exit, 3);
  const std::string wide = folder.write("l.mtx", banner + "9999999 9999999 0\n");
  EXPECT_EQ(tessera({"convert", wide, folder / "l.smtx"}).exit, 3);
}

TEST(ConvertCommand, RefusesAMemoryThatChangesNothing) {
  const TemporaryFolder folder;
  const std::string file = folder.write("p.smtx", "2, 2, 1\n0 1 1\n0\n");
  const Outcome outcome = tessera({"convert", file, folder / "p.mtx", "--memory", "100"});
  EXPECT_EQ(outcome.exit, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--memory: only a conversion from .mtx to .smtx"));
  EXPECT_EQ(tessera({"convert", folder / "p.mtx", folder / "q.smtx", "--memory", "63"}).exit, 2);
}

TEST(ConvertCommand, RefusesOptionsWithoutEffectAndSaysThatValuesAreLeftOut) {
  const TemporaryFolder folder;
  const std::string file = folder.write(
      "m.mtx", "%%MatrixMarket matrix coordinate real general\n4 4 2\n1 1 2.5\n3 2 1\n");
  const Outcome pattern = tessera({"convert", file, folder / "m.smtx"});
  EXPECT_EQ(pattern.exit, 0) << pattern.err;
  EXPECT_THAT(pattern.out, HasSubstr("2 stored; pattern only: its values are left out\n"));
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{file, folder / "a.smtx", "--block-size", "2"},
        {file, folder / "a.mtx", "--tensor", "w"},
        {folder / "m.smtx", folder / "a.mtx", "--sum-duplicates"}}) {
    std::vector<std::string> words{"convert"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = tessera(words);
    EXPECT_EQ(outcome.exit, 2) << more[2];
    EXPECT_THAT(outcome.err, HasSubstr(more[2] + ": "));
    EXPECT_THAT(outcome.err, HasSubstr("; omit it"));
  }
}

TEST(CompareCommand, NamesWhatChangedAndExitsOneOverTheThreshold) {
  const TemporaryFolder folder;
  const auto report = [&](const std::string& name, const std::string& batch) {
    std::ofstream(folder / name) << tessera({"run", "--input-size=48", "--output-size=32",
                                             "--density=0.25", "--tiles-per-ipu=8", "--json",
                                             "--batch-size", batch})
                                        .out;
    return folder / name;
  };
  const std::string small = report("a", "4"), large = report("b", "64");
  const Outcome same = tessera({"compare", small, small});
  EXPECT_EQ(same.exit, 0) << same.err;
  const Outcome more = tessera({"compare", small, large});
  EXPECT_EQ(more.exit, 1);
  EXPECT_THAT(more.out, HasSubstr("Fwd multiply compute_cycles"));
  EXPECT_EQ(tessera({"compare", large, small}).exit, 0);
  EXPECT_EQ(tessera({"compare", small, large, "--threshold=100000"}).exit, 0);
  std::ofstream(folder / "c") << "{}";
  EXPECT_EQ(tessera({"compare", small, folder / "c"}).exit, 3);
}

TEST(SweepCommand, PlansEachValueAsPlanDoes) {
  const std::vector<std::string> layer{"--input-size=256", "--output-size=256", "--density=0.1",
                                       "--batch-size=16", "--single-phase=fwd"};
  const auto cycles = [&](std::vector<std::string> more) {
    more.insert(more.end(), layer.begin(), layer.end());
    return tessera(more).out;
  };
  std::istringstream sweep(cycles({"sweep", "--over=tiles", "--values=8,64", "--csv"}));
  std::string line;
  std::getline(sweep, line);
  for (const char* tiles : {"8", "64"}) {
    std::getline(sweep, line);
    const std::string count =
        line.substr(line.find(',') + 1, line.find(',', line.find(',') + 1) - line.find(',') - 1);
    EXPECT_THAT(cycles({"plan", std::string("--tiles-per-ipu=") + tiles,
                        R"(--plan-constraints={"useDense": false})"}),
                HasSubstr("cost       " + count + " cycles"));
  }
  const auto points =
      nlohmann::json::parse(cycles({"sweep", "--over=tiles", "--values=8,64", "--json"}))["points"];
  EXPECT_EQ(points[0]["tiles"], 8) << "a figure that varies is in every point";
  EXPECT_EQ(points[1]["tiles"], 64);
  EXPECT_LE(points[1]["tiles_used"], 64);
  for (const char* over : {"memory", "exchange", "block", "batch"})
    EXPECT_THAT(cycles({"sweep", std::string("--over=") + over, "--values=4000000,8"}),
                Not(HasSubstr("error")));
  EXPECT_EQ(tessera({"sweep", "--over=tiles", "--values=1.5", "--input-size=8", "--output-size=8",
                     "--density=1"})
                .exit,
            2);
}

TEST(SweepCommand, HasARowForEveryPointOfAGrid) {
  const Outcome outcome = tessera({"sweep", "--over=density=0.05:0.2:2,block=1,4",
                                   "--input-size=64", "--output-size=64", "--batch-size=8",
                                   "--single-phase=fwd", "--tiles-per-ipu=16", "--json"});
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  const auto study = nlohmann::json::parse(outcome.out);
  const auto& points = study["points"];
  ASSERT_EQ(points.size(), 4u);
  EXPECT_EQ(points[1]["density"], 0.05);
  EXPECT_EQ(points[1]["block"], 4);
  for (const auto& point : points) {
    const double cycles = point["cycles"], dense = point["dense_cycles"];
    EXPECT_DOUBLE_EQ(point["dense_over_sparse"].get<double>(), dense / cycles);
    const double flops = 2.0 * 64 * 64 * 8, clock = 1.325e9;
    EXPECT_DOUBLE_EQ(point["dense_flops_per_second"].get<double>(), flops / (dense / clock));
    EXPECT_DOUBLE_EQ(point["flops_per_second"].get<double>(),
                     flops * point["density"].get<double>() / (cycles / clock));
  }
  EXPECT_THAT(study["verdict"].get<std::string>(), HasSubstr("of 4 points"));
}

TEST(SweepCommand, TakesEveryNumberOfTheMachineFile) {
  for (const std::string key : {"sync", "control", "launch", "receive_start", "workers",
                                "half_float_conv_units", "clock_hz", "tiles_per_exchange_bus"}) {
    const Outcome outcome =
        tessera({"sweep", "--over=" + key + "=1,2", "--input-size=64", "--output-size=64",
                 "--density=0.1", "--tiles-per-ipu=16", "--single-phase=fwd"});
    EXPECT_EQ(outcome.exit, 0) << key << outcome.err;
  }
}

TEST(SweepCommand, RefusesWhatIsNoGrid) {
  for (const std::string over : {"weight=1", "density", "density=", "density=a", "density=0.5:0.1",
                                 "density=0:1", "density=0.1:0.5:1", "density=0.1,density=0.2",
                                 "=1", "batch=1:1000:9000,tiles=1:1000:50", "batch=3e9"})
    EXPECT_EQ(
        tessera({"sweep", "--over=" + over, "--input-size=8", "--output-size=8", "--density=0.5"})
            .exit,
        2)
        << over;
  const Outcome host = tessera({"sweep", "--over=sync=1", "--input-size=8", "--output-size=8",
                                "--density=0.5", "--machine=host"});
  EXPECT_EQ(host.exit, 2);
  EXPECT_THAT(host.err, HasSubstr("sync belongs to modelled machines"));
}

TEST(SweepCommand, RefusesAnOptionWhoseFigureItVaries) {
  for (const auto& [over, option] :
       std::vector<std::pair<std::string, std::string>>{{"density=0.1", "--density=0.5"},
                                                        {"density=0.1", "--sparsity=0.5"},
                                                        {"density=0.1", "--sparsity-factor=0.5"},
                                                        {"batch=4", "--batch-size=8"},
                                                        {"block=4", "--block-size=8"},
                                                        {"inputs=8", "--input-size=16"},
                                                        {"outputs=8", "--output-size=16"},
                                                        {"tiles=8", "--tiles-per-ipu=16"}}) {
    std::vector<std::string> words{"sweep", "--over=" + over, option};
    for (const char* rest : {"--input-size=8", "--output-size=8", "--density=0.5"})
      if (!std::string(rest).starts_with(option.substr(0, option.find('='))) &&
          !(over.starts_with("density") && std::string(rest).starts_with("--density")))
        words.push_back(rest);
    const Outcome outcome = tessera(words);
    EXPECT_EQ(outcome.exit, 2) << option;
    EXPECT_THAT(outcome.err, HasSubstr(option.substr(0, option.find('=')) + ": --over gives"));
  }
}

TEST(SweepCommand, MeasuresOnThisComputer) {
  const Outcome outcome =
      tessera({"sweep", "--over=density=0.1,block=4", "--input-size=64", "--output-size=64",
               "--single-phase=fwd", "--machine=host", "--json"});
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  const auto point = nlohmann::json::parse(outcome.out)["points"][0];
  EXPECT_GT(point["seconds"], 0);
  EXPECT_GT(point["dense_seconds"], 0);
  EXPECT_THAT(point["dense_kernel"].get<std::string>(), testing::ContainsRegex("half|float"));
}

TEST(CompareCommand, ComparesPlansAndPricesThemOnAnotherMachine) {
  const TemporaryFolder folder;
  const auto plan = [&](const std::string& name, const std::string& machine) {
    folder.write(name, tessera({"plan", "--input-size=64", "--output-size=64", "--density=0.1",
                                "--single-phase=fwd", "--machine", machine, "--json"})
                           .out);
    return folder / name;
  };
  const std::string here = plan("a.json", "gc200"), there = plan("b.json", "bow");
  const Outcome both = tessera({"compare", here, there, "--json"});
  ASSERT_EQ(both.exit, 0) << both.err;
  EXPECT_EQ(nlohmann::json::parse(both.out)["before_is"], "modelled on gc200");
  // The presets differ in their clocks only, so the cycles are the same.
  const Outcome priced = tessera({"compare", here, "--machine=bow"});
  EXPECT_EQ(priced.exit, 0) << priced.err;
  EXPECT_THAT(priced.out, HasSubstr("the best plan for bow takes "));
  EXPECT_EQ(tessera({"compare", here}).exit, 2);
  EXPECT_EQ(tessera({"compare", here, "--machine=host"}).exit, 2);
  EXPECT_EQ(tessera({"compare", folder.write("c", "[1]"), "--machine=bow"}).exit, 3);
}

TEST(CrossoverCommand, SparseIsCheaperUpToItAndNoLongerBeyond) {
  const std::vector<std::string> layer{"--input-size=1024", "--output-size=1024", "--batch-size=64",
                                       "--single-phase=fwd"};
  auto words = layer;
  words.insert(words.begin(), "crossover");
  const std::string out = tessera(words).out;
  std::int64_t dense = 0;
  double density = 0;
  ASSERT_EQ(std::sscanf(out.c_str(), "dense: %ld", &dense), 1);
  ASSERT_EQ(std::sscanf(out.c_str() + out.find("\n1x1") + 1, "1x1 %lf", &density), 1);
  const auto cycles = [&](double at) {
    auto plan = layer;
    plan.insert(plan.begin(), {"plan", "--density=" + std::to_string(at),
                               R"(--plan-constraints={"useDense": false})"});
    const std::string text = tessera(plan).out;
    return std::stol(text.substr(text.find("cost       ") + 11));
  };
  EXPECT_LT(cycles(density), dense);
  EXPECT_GE(cycles(density + 0.001), dense);
}

// With the best batch of each side, hardware has these crossings below 1/32 and at about 1/4
// (bench/results/published.md). One middle batch is kinder to sparse, but not by much. A batch of
// 4096 has no plan as a whole where sparse stops paying.
TEST(CrossoverCommand, IsNearPublishedCrossings) {
  for (const std::string batch : {"256", "4096"}) {
    std::vector<std::string> words{"crossover",
                                   "--machine=bow",
                                   "--input-size=4096",
                                   "--output-size=4096",
                                   "--batch-size=" + batch,
                                   "--data-type=half",
                                   "--single-phase=fwd",
                                   "--json"};
#ifdef TESSERA_SANITIZED  // a million elements take minutes there
    words.push_back("--block-size=16");
#endif
    const Outcome outcome = tessera(words);
    ASSERT_EQ(outcome.exit, 0) << outcome.err;
    const auto study = nlohmann::json::parse(outcome.out);
    for (const auto& row : study["blocks"]) {
      const double density = row["crossover_density"];
      if (row["block"] == "1x1") {
        EXPECT_LT(density, 1.0 / 16) << batch;
      } else if (row["block"] == "16x16") {
        EXPECT_GT(density, 0.15) << batch;
        EXPECT_LT(density, 0.35) << batch;
        EXPECT_EQ(
            row["note"].is_string() && row["note"].get<std::string>().starts_with("batch in "),
            batch == "4096");
      }
    }
  }
}

TEST(CrossoverCommand, TakesOneBlockAndThePlannersOptions) {
  const std::vector<std::string> layer{"crossover",          "--input-size=128",
                                       "--output-size=96",   "--batch-size=16",
                                       "--single-phase=fwd", "--tiles-per-ipu=16"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), layer.begin(), layer.end());
    return tessera(more);
  };
  const Outcome one = with({"--block-size=4,8"});
  EXPECT_EQ(one.exit, 0) << one.err;
  EXPECT_THAT(one.out, HasSubstr("\n4x8 "));
  EXPECT_THAT(one.out, Not(HasSubstr("\n1x1 ")));
  EXPECT_EQ(with({R"(--plan-constraints={"useDense": true})"}).exit, 2);
  EXPECT_EQ(with({"--block-size=auto"}).exit, 2);
  EXPECT_EQ(with({"--matrix=w.mtx"}).exit, 2) << "the file has the size";
}

TEST(CrossoverCommand, SaysWhyARowHasNoPlanAndKeepsTheOthers) {
  const std::vector<std::string> layer{"crossover",          "--input-size=128",
                                       "--output-size=96",   "--batch-size=16",
                                       "--single-phase=fwd", "--tiles-per-ipu=16"};
  auto words = layer;
  words.insert(words.end(),
               {"--partials-type=half", R"(--matmul-options={"popLibsParity": true})"});
  const Outcome halves = tessera(words);
  EXPECT_EQ(halves.exit, 0) << halves.err;
  EXPECT_THAT(halves.out,
              testing::ContainsRegex("1x1 +0.000 +- +0.[0-9]+\n  partials type is half"));
  EXPECT_THAT(halves.out, testing::ContainsRegex("4x4 +0.[0-9]+ +"));
  words = layer;
  words.push_back(R"(--matmul-options={"availableMemoryProportion": 0.00001})");
  const Outcome nothing = tessera(words);
  EXPECT_EQ(nothing.exit, 4);
  EXPECT_THAT(nothing.out, HasSubstr("dense: no plan"));
  EXPECT_THAT(nothing.out, HasSubstr("  no plan for g1 x96 y128"));
}

std::string with_commas(std::int64_t number) {
  return fmt::format("{}", fmt::group_digits(number));
}

TEST(CrossoverCommand, ComparesThePatternOfAFile) {
  const TemporaryFolder folder;
  io::write_smtx_file(folder / "w.smtx", sparse::random_pattern(96, 64, {1, 1}, 0.1, 3));
  const std::vector<std::string> words{folder / "w.smtx", "--batch-size=16", "--single-phase=fwd",
                                       "--tiles-per-ipu=16"};
  std::vector<std::string> inspect{"advise"}, crossover{"crossover", "--json", "--matrix"};
  inspect.insert(inspect.end(), words.begin(), words.end());
  crossover.insert(crossover.end(), words.begin(), words.end());
  const std::string inspected = tessera(inspect).out;
  const Outcome outcome = tessera(crossover);
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  const auto study = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(study["blocks"].size(), 4u);
  for (const auto& block : study["blocks"])
    EXPECT_THAT(inspected,
                testing::ContainsRegex("\n" + block["block"].get<std::string>() + " .* " +
                                       with_commas(block["pattern_cycles"]) + " +[0-9]+\n"));
}

TEST(Commands, HelpIsNoCommandAndNamesTheOption) {
  const Outcome outcome = tessera({"help"});
  EXPECT_EQ(outcome.exit, 2);
  EXPECT_THAT(outcome.err, HasSubstr("hint: tessera --help, tessera COMMAND --help\ncommands: "));
}

TEST(Commands, WarnWhereASparsityFactorLooksLikeASparsity) {
  const std::vector<std::string> layer{"plan", "--input-size=8", "--output-size=8"};
  const auto with = [&](const std::string& factor) {
    auto words = layer;
    words.push_back("--sparsity-factor=" + factor);
    return tessera(words);
  };
  EXPECT_THAT(with("0.95").err, HasSubstr("warning: --sparsity-factor 0.95 is density 0.95"));
  EXPECT_EQ(with("0.95").exit, 0);
  EXPECT_THAT(with("0.5").err, Not(HasSubstr("warning")));
}

TEST(Commands, AnUnknownOneGetsTheNearestNameAndTheList) {
  const Outcome wrong = tessera({"pln"});
  EXPECT_EQ(wrong.exit, 2);
  EXPECT_THAT(wrong.err, HasSubstr("there is no command \"pln\"\nhint: did you mean plan?\n"));
  EXPECT_THAT(wrong.err, HasSubstr("commands: advise, crossover, sweep, run, "));
  const Outcome far = tessera({"xyzzyx"});
  EXPECT_THAT(far.err, Not(HasSubstr("hint: did")));
  EXPECT_THAT(far.err, HasSubstr("commands: "));
}

TEST(MachineCommand, ShowsWhatMachineOptionsRead) {
  const TemporaryFolder folder;
  EXPECT_THAT(tessera({"machine", "list"}).out, HasSubstr("gc200"));
  std::ofstream(folder / "m.json") << tessera({"machine", "show", "bow"}).out;
  EXPECT_EQ(tessera({"machine", "show", folder / "m.json"}).out,
            tessera({"machine", "show", "bow"}).out);
  EXPECT_THAT(tessera({"machine", "list"}).out, HasSubstr("host    this computer: "));
  const auto host = nlohmann::json::parse(tessera({"machine", "show", "host"}).out);
  EXPECT_GE(host["cores"], 1);
  EXPECT_GT(host["l2_bytes"], host["l1_bytes"]);
  EXPECT_EQ(tessera({"machine", "show", "none"}).exit, 2);
}

TEST(Doctor, NamesTheInstructionSetOrRefusesAnUnknownOne) {
  const auto doctor = [](const std::string& target) {
    return run({"/usr/bin/env", "TESSERA_TARGET=" + target, TESSERA_TOOL, "doctor"});
  };
  // Plain C++ is one of the two: SCALAR by g++ 12, EMU128 by clang and newer versions of g++.
  EXPECT_THAT(doctor("scalar").out + doctor("emu128").out,
              testing::ContainsRegex("(SCALAR|EMU128), chosen by TESSERA_TARGET"));
  for (const char* const name : {"avx9", "avx", "AVX2 ", "SVE2", "\x1b[1m"}) {
    const Outcome outcome = doctor(name);
    EXPECT_EQ(outcome.exit, 2) << outcome.out;
    EXPECT_THAT(outcome.err,
                testing::AllOf(HasSubstr("TESSERA_TARGET is \""),
                               HasSubstr("the instruction sets of this computer are"),
                               testing::ContainsRegex("(SCALAR|EMU128);"), Not(HasSubstr("\x1b"))));
  }
}

TEST(DoctorCommand, SaysWhatThisBuildHas) {
  const Outcome outcome = tessera({"doctor"});
  EXPECT_EQ(outcome.exit, 0);
  EXPECT_THAT(outcome.out,
              testing::ContainsRegex(io::can_read_npz() ? ".npz files +yes" : ".npz files +no"));
  for (const char* feature : {"instruction set +[A-Z]", "dense products +[a-z]", "threads +[1-9]",
                              "--html +", "processor +"})
    EXPECT_THAT(outcome.out, testing::ContainsRegex(feature));
}

TEST(DoctorCommand, NamesTheRemedyOfAMissingCalibration) {
  const TemporaryFolder folder;
  const auto doctor = [&](const std::string& cache) {
    return run({"/bin/sh", "-c", "XDG_CACHE_HOME=" + cache + " exec \"$0\" doctor", TESSERA_TOOL})
        .out;
  };
  EXPECT_THAT(doctor(folder / "none"),
              testing::ContainsRegex("calibration +no: .*; run tessera machine calibrate"));
  std::filesystem::create_directories(folder / "cache/tessera");
  folder.write("cache/tessera/host_rates.json", "{}");
  EXPECT_THAT(doctor(folder / "cache"), testing::ContainsRegex("calibration +no: .* is damaged"));
}

}  // namespace
}  // namespace tessera::test
