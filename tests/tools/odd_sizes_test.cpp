#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tessera/planner/plan_json.hpp"
#include "tessera/report/plan_notes.hpp"
#include "tessera/tests/support/process.hpp"

namespace tessera::test {
namespace {

using testing::HasSubstr;

// Sides that no block size of the tests divides, or that one of them divides and the other not.
struct Sides {
  int x, y;
};
constexpr Sides kSides[] = {{33, 50}, {1, 1}, {17, 64}, {31, 7}};
constexpr int kBatch = 5;

Outcome run_layer(Sides sides, int block, std::vector<std::string> more) {
  more.insert(more.begin(),
              {TESSERA_SPARSE_FC_LAYER, "--output-size=" + std::to_string(sides.x),
               "--input-size=" + std::to_string(sides.y), "--block-size=" + std::to_string(block),
               "--batch-size=" + std::to_string(kBatch), "--tiles-per-ipu=8"});
  return run(more);
}

std::string results(const char* pass, int count) {
  return std::string(pass) + " ok: " + std::to_string(count) + " results";
}

TEST(OddSizes, RunInEveryBlockPassAndType) {
  for (const Sides sides : kSides)
    for (const int block : {2, 4, 5, 8, 16})
      for (const char* phase : {"all", "fwd", "bwd", "wu"})
        for (const char* type : {"float", "half"}) {
          const Outcome outcome =
              run_layer(sides, block,
                        {"--density=0.3", std::string("--single-phase=") + phase,
                         std::string("--data-type=") + type});
          EXPECT_EQ(outcome.exit, 0) << sides.x << " x " << sides.y << " in " << block << ", "
                                     << phase << ", " << type << ": " << outcome.err << outcome.out;
          EXPECT_THAT(outcome.out, HasSubstr(results("Fwd    ", sides.x * kBatch)));
        }
}

TEST(OddSizes, AreCheckedInsideTheLayerOnlyAndThereInFull) {
  for (const Sides sides : kSides)
    for (const int block : {4, 16}) {
      const Outcome outcome = run_layer(sides, block, {"--density=1"});
      EXPECT_EQ(outcome.exit, 0) << outcome.err;
      for (const std::string& line :
           {results("Fwd    ", sides.x * kBatch), results("GradA  ", sides.y * kBatch),
            results("GradW  ", sides.x * sides.y)})
        EXPECT_THAT(outcome.out, HasSubstr(line)) << sides.x << " x " << sides.y << " in " << block;
    }
}

// Two elements, the second in the last row and column: a 4 x 4 block at either corner of 5 x 7.
const char* const kCorners =
    "%%MatrixMarket matrix coordinate real general\n5 7 2\n1 1 0.5\n5 7 -3\n";

TEST(OddSizes, OfAFileArePadded) {
  const TemporaryFolder folder;
  const std::string path = folder.write("corners.mtx", kCorners);
  const Outcome outcome =
      run({TESSERA_SPARSE_FC_LAYER, "--matrix=" + path, "--block-size=4", "--batch-size=3"});
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("x 5 outputs, y 7 inputs"));
  EXPECT_THAT(outcome.out, HasSubstr(results("Fwd    ", 15)));
  EXPECT_THAT(outcome.out, HasSubstr(results("GradW  ", 16 + 3))) << "one block, one row of three";
}

TEST(OddSizes, ArePlannedAsTheyAre) {
  const TemporaryFolder folder;
  const Outcome of_file = run({TESSERA_TOOL, "plan", "--json", "--block-size=4",
                               "--matrix=" + folder.write("corners.mtx", kCorners)});
  ASSERT_EQ(of_file.exit, 0) << of_file.err;
  const Problem problem =
      planner::plan_from_json(report::without_notes(of_file.out), "stdout").problem;
  EXPECT_EQ(problem.size, (Dims{1, 5, 7, 1}));
  EXPECT_EQ(problem.density, 0.5) << "two of the four blocks that cover it";
  const Outcome of_sizes = run({TESSERA_TOOL, "plan", "--input-size=50", "--output-size=33",
                                "--density=0.3", "--block-rows=4", "--block-cols=8"});
  EXPECT_EQ(of_sizes.exit, 0) << of_sizes.err;
  EXPECT_THAT(of_sizes.out, HasSubstr("x33 y50 z1, block 4x8"));
}

}  // namespace
}  // namespace tessera::test
