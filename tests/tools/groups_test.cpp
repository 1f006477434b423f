#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/matrix.hpp"
#include "tessera/base/random.hpp"
#include "tessera/io/array.hpp"
#include "tessera/tests/support/process.hpp"

namespace tessera::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr std::int64_t kInputs = 48, kOutputs = 32, kBatch = 8;

Outcome run_layer(std::vector<std::string> more) {
  std::vector<std::string> all{TESSERA_TOOL, "run", "--input-size=48", "--output-size=32",
                               "--density=0.25"};
  all.insert(all.end(), more.begin(), more.end());
  return run(all);
}

// Small whole numbers, whose sums are exact in every order.
Matrix<float> whole_numbers(std::int64_t rows, std::uint64_t seed) {
  Random random(seed);
  Matrix<float> matrix(rows, kBatch);
  for (float& value : matrix.elements()) value = float(random.below(9)) - 4;
  return matrix;
}

std::string file_of(const TemporaryFolder& folder, const std::string& name,
                    MatrixView<const float> matrix) {
  return folder.write(name, io::write_npy(matrix));
}

// Runs the tool into a folder and returns that folder.
std::string results_of(const TemporaryFolder& folder, const std::string& name,
                       std::vector<std::string> words) {
  words.push_back("--quiet");
  words.push_back("--output-dir=" + (folder / name));
  const Outcome outcome = run_layer(words);
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  return folder / name;
}

std::vector<double> values_of(const std::string& path) {
  return io::read_npy(read_file(path), path).values;
}

TEST(Groups, HaveTheResultsOfEachGroupAlone) {
  const TemporaryFolder folder;
  constexpr std::int64_t kGroups = 3;
  const Matrix<float> s = whole_numbers(kGroups * kInputs, 1);
  const Matrix<float> q_grad = whole_numbers(kGroups * kOutputs, 2);
  for (const char* machine : {"gc200", "host"}) {
    const auto arguments = [&](std::int64_t first, std::int64_t count) {
      const auto part = [&](const Matrix<float>& whole, std::int64_t rows) {
        return whole.view().sub({first * rows, (first + count) * rows}, {0, kBatch});
      };
      const std::string name = std::to_string(first) + "of" + std::to_string(count);
      return std::vector<std::string>{
          "--machine=" + std::string(machine),
          "--data-type=float",
          "--seed=" + std::to_string(7 + first),
          "--groups=" + std::to_string(count),
          "--input=" + file_of(folder, "s" + name + ".npy", part(s, kInputs)),
          "--output-gradient=" + file_of(folder, "q" + name + ".npy", part(q_grad, kOutputs))};
    };
    const std::string all =
        results_of(folder, std::string("all ") + machine, arguments(0, kGroups));
    for (std::int64_t g = 0; g < kGroups; ++g) {
      const std::string alone = results_of(folder, machine + std::to_string(g), arguments(g, 1));
      for (const auto& [name, rows] :
           {std::pair{"/q.npy", kOutputs}, std::pair{"/s_gradient.npy", kInputs}}) {
        const std::vector<double> whole = values_of(all + name);
        const auto first = whole.begin() + g * rows * kBatch;
        EXPECT_EQ(std::vector<double>(first, first + rows * kBatch), values_of(alone + name))
            << machine << name << " of group " << g;
      }
      EXPECT_EQ(read_file(all + "/weight_gradient_" + std::to_string(g) + ".npz"),
                read_file(alone + "/weight_gradient.npz"))
          << machine << " group " << g;
    }
  }
}

TEST(Groups, AreInEveryReport) {
  const std::vector<std::string> words{"--groups=2", "--batch-size=8", "--tiles-per-ipu=16",
                                       R"(--plan-constraints={"useDense": false})"};
  const auto with = [&](const char* more) {
    std::vector<std::string> all = words;
    all.push_back(more);
    return run_layer(all);
  };
  const Outcome text = with("--self-check");
  EXPECT_EQ(text.exit, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("g 2 groups"));
  EXPECT_THAT(text.out, HasSubstr("GradW   ok: 768 results"));
  EXPECT_THAT(text.out, HasSubstr("verdict"));
  const json report = json::parse(with("--json").out);
  EXPECT_EQ(report["planned"]["problem"]["size"]["g"], 2);
  EXPECT_EQ(report["status"], "passed");
  EXPECT_EQ(report["verdict"]["passes"].size(), 3u);
  std::vector<std::string> with_tiles = words;
  with_tiles.insert(with_tiles.end(), {"--json", "--report-tiles"});
  EXPECT_TRUE(json::parse(run_layer(with_tiles).out)["passes"][0].contains("tiles"));
  EXPECT_THAT(with("--csv").out, HasSubstr(",32,48,8,2,1,1,"));
}

TEST(Groups, ShowTheTilesOfAllGroupsOnThePage) {
  const TemporaryFolder folder;
  const std::string page = folder / "page.html";
  const Outcome outcome =
      run_layer({"--groups=2", "--batch-size=8", "--tiles-per-ipu=16", "--quiet",
                 R"(--plan-constraints={"useDense": false})", "--html=" + page});
  if (outcome.exit == 2) GTEST_SKIP() << "built without npm: there are no pages";
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  const std::string text = read_file(page),
                    open = R"(<script type="application/json" id="report">)";
  const std::size_t begin = text.find(open) + open.size();
  const json report = json::parse(text.substr(begin, text.find("</script>", begin) - begin));
  std::int64_t values[2] = {};
  for (const json& tile : report["tiles"])
    values[tile["g"].get<std::size_t>()] += tile["values"].get<std::int64_t>();
  EXPECT_EQ(values[0], 384);
  EXPECT_EQ(values[1], 384);
}

TEST(Groups, RunOnAPod) {
  const Outcome outcome = run_layer(
      {"--groups=4", "--batch-size=8", "--devices=2", "--tiles-per-ipu=16", "--self-check"});
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("layer      g4 x32 y48 z8"));
  const std::string checks = outcome.out.substr(outcome.out.rfind("self-check of GradW"));
  EXPECT_THAT(checks, HasSubstr("check      ok: 1536 results"));
}

TEST(Groups, AreRefusedWhereThereIsOnePattern) {
  for (const auto& [more, named] : {std::pair{"--static", "omit it with --static"},
                                    std::pair{"--values=v.npy", "omit --values or --groups"},
                                    std::pair{"--matrix=m.smtx", "--matrix excludes"}}) {
    std::vector<std::string> words{TESSERA_TOOL, "run", "--groups=2", more};
    if (std::string(more).find("matrix") == std::string::npos)
      words.insert(words.end(), {"--input-size=48", "--output-size=32", "--density=0.25"});
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.exit, 2) << more;
    EXPECT_THAT(outcome.err, HasSubstr(named));
  }
  EXPECT_EQ(run_layer({"--groups=0"}).exit, 2);
}

}  // namespace
}  // namespace tessera::test
