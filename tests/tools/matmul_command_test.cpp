#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tessera/tests/support/process.hpp"

namespace tessera::test {
namespace {

using testing::HasSubstr;
using Words = std::vector<std::string>;

Outcome matmul(Words words) {
  words.insert(words.begin(), {TESSERA_TOOL, "matmul"});
  return run(words);
}

const Words kSmall{"--m=24", "--k=40", "--n=6", "--sparsity=0.7"};

Words with(const Words& words) {
  Words all = kSmall;
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

TEST(MatMulCommand, ChecksEveryProductOnBothMachines) {
  for (const char* machine : {"--tiles-per-ipu=12", "--machine=host"})
    for (const Words& switches : {Words{},
                                  {"--transpose-lhs"},
                                  {"--transpose-rhs"},
                                  {"--transpose-lhs", "--transpose-rhs"},
                                  {"--groups=3"},
                                  {"--groups=2", "--transpose-rhs", "--block-size=4"},
                                  {"--data-type=float", "--block-size={2,4}"}}) {
      for (const bool dense_sparse : {false, true}) {
        Words words = with(switches);
        words.emplace_back(machine);
        if (dense_sparse) words.emplace_back("--dense-sparse");
        const Outcome outcome = matmul(words);
        SCOPED_TRACE(testing::PrintToString(words) + outcome.err);
        EXPECT_EQ(outcome.exit, 0);
        EXPECT_THAT(outcome.out, HasSubstr("PASS"));
        EXPECT_THAT(outcome.out, HasSubstr(dense_sparse ? "B sparse" : "A sparse"));
      }
    }
}

TEST(MatMulCommand, ComparesEveryElementOfEveryGroup) {
  const Outcome outcome = matmul(with({"--groups=3", "--tiles-per-ipu=12", "--json"}));
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  const auto report = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(report.at("planned").at("problem").at("size").at("g"), 3);
  EXPECT_THAT(outcome.out, HasSubstr("g3 C[24][6] = A[24][40] * B[40][6], A sparse"));
  EXPECT_EQ(report.at("passes").size(), 1u);
  EXPECT_EQ(report.at("passes")[0].at("check").at("compared"), 3 * 24 * 6);
}

TEST(MatMulCommand, ExplainsThePlanAndTheMove) {
  const Words switches{"--transpose-rhs", "--tiles-per-ipu=12", "--explain"};
  const Outcome outcome = matmul(with(switches));
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("transpose  the dense operand of each group, 6 x 40, in"));
  EXPECT_GT(outcome.out.size(),
            matmul(with({"--transpose-rhs", "--tiles-per-ipu=12"})).out.size() + 300);
  EXPECT_EQ(matmul(with({"--explain", "--json"})).exit, 2);
  EXPECT_EQ(matmul(with({"--explain", "--machine=host"})).exit, 2);
}

// A dense product reads the operand in the same order, so the move is on both sides of the verdict.
TEST(MatMulCommand, ChargesTheMoveToTheDenseSideToo) {
  const auto dense_cycles = [](const Words& switches) {
    const Outcome outcome = matmul(with(switches));
    EXPECT_EQ(outcome.exit, 0) << outcome.err;
    const auto verdict = nlohmann::json::parse(outcome.out).at("verdict");
    return verdict.at("passes")[0].at("dense_cycles").get<double>();
  };
  const double plain = dense_cycles({"--tiles-per-ipu=12", "--json"}),
               moved = dense_cycles({"--tiles-per-ipu=12", "--transpose-rhs", "--json"});
  EXPECT_GT(moved, plain);
}

TEST(MatMulCommand, PlannedAndModelledCyclesOfTheMoveAreEqual) {
  const Outcome outcome = matmul(with({"--transpose-rhs", "--tiles-per-ipu=12"}));
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  std::istringstream lines(outcome.out);
  bool found = false;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find("transpose operand");
    if (at == std::string::npos || line.starts_with("note")) continue;
    std::istringstream figures(line.substr(at + 17));
    std::string steps, compute, exchange, cycles, planned;
    figures >> steps >> compute >> exchange >> cycles >> planned;
    EXPECT_EQ(cycles, planned) << line;
    EXPECT_EQ(steps, "3");
    found = true;
    break;
  }
  EXPECT_TRUE(found) << outcome.out;
}

TEST(MatMulCommand, TakesTheSizesOfAFileAsItIsStored) {
  const TemporaryFolder folder;
  std::ofstream(folder / "m.smtx") << "4, 6, 5\n0 2 2 3 5\n0 1 4 3 5\n";
  const std::string file = "--matrix=" + (folder / "m.smtx");
  const Outcome plain = matmul({file, "--n=3", "--tiles-per-ipu=4"});
  EXPECT_EQ(plain.exit, 0) << plain.err;
  EXPECT_THAT(plain.out, HasSubstr("C[4][3] = A[4][6] * B[6][3]"));
  const Outcome turned = matmul({file, "--n=3", "--tiles-per-ipu=4", "--transpose-lhs"});
  EXPECT_EQ(turned.exit, 0) << turned.err;
  EXPECT_THAT(turned.out, HasSubstr("C[6][3] = transpose(A)[6][4] * B[4][3]"));
  const Outcome right = matmul({file, "--m=3", "--tiles-per-ipu=4", "--dense-sparse"});
  EXPECT_EQ(right.exit, 0) << right.err;
  EXPECT_THAT(right.out, HasSubstr("C[3][6] = A[3][4] * B[4][6], B sparse"));
  const Outcome wrong = matmul({file, "--n=3", "--m=9", "--tiles-per-ipu=4"});
  EXPECT_EQ(wrong.exit, 2);
  EXPECT_THAT(wrong.err, HasSubstr("--m is 9"));
}

TEST(MatMulCommand, WritesEveryFormOfOutput) {
  const TemporaryFolder folder;
  EXPECT_EQ(matmul(with({"--tiles-per-ipu=12", "--csv"})).exit, 0);
  const Outcome files =
      matmul(with({"--tiles-per-ipu=12", "--transpose-rhs", "--self-check", "--profile",
                   "--report-plan", "--trace=" + (folder / "t.json"),
                   "--output-dir=" + (folder / "out"), "--plan-cache=" + (folder / "plans")}));
  EXPECT_EQ(files.exit, 0) << files.err;
  for (const char* file : {"t.json", "out/q.npy", "out/s.npy", "out/report.json", "out/plan.json"})
    EXPECT_TRUE(std::ifstream(folder / file).good()) << file;
  EXPECT_EQ(matmul(with({"--plan-only", "--non-zeros=100"})).exit, 2) << "two densities";
  EXPECT_EQ(matmul({"--m=24", "--k=40", "--n=6", "--non-zeros=100", "--plan-only"}).exit, 0);
}

TEST(MatMulCommand, RefusesWhatItCannotMultiply) {
  for (const Words& words :
       {Words{},
        {"--m=3"},
        {"--m=3", "--k=4", "--n=5"},
        {"--m=0", "--k=4", "--n=5", "--density=1"},
        {"--m=3", "--k=4", "--n=5", "--non-zeros=13"},
        {"--m=3", "--k=4", "--n=5", "--density=1", "--matmul-options={\"doGradWPass\": true}"},
        {"--m=3", "--k=4", "--n=5", "--density=1", "--groups=0"}}) {
    const Outcome outcome = matmul(words);
    EXPECT_EQ(outcome.exit, 2) << testing::PrintToString(words) << outcome.out;
    EXPECT_FALSE(outcome.err.empty());
  }
}

}  // namespace
}  // namespace tessera::test
