#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tessera/base/error.hpp"
#include "tessera/io/write.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/support/process.hpp"
#include "tessera/tools/options/models.hpp"

namespace tessera::tools {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

LayerArguments small_layer() {
  LayerArguments a;
  a.output_size = 96;
  a.input_size = 64;
  a.batch_size = 16;
  a.density = 0.1;
  a.phase = PhaseChoice::Fwd;
  a.tiles = 16;
  a.chooses_block = true;
  return a;
}

test::Outcome run_small(std::vector<std::string> words) {
  words.insert(words.end(), {"--batch-size=16", "--single-phase=fwd", "--block-size=auto"});
  return test::run(words);
}

const std::vector<std::string> kRandom{"--input-size=64", "--output-size=96", "--density=0.1"};

TEST(ChooseBlock, TakesTheBlockWithTheFewestPlannedCycles) {
  LayerArguments a = small_layer();
  const auto model = target_of(a).expected(problem_of(a));
  const std::vector<study::Cost> costs = study::in_square_blocks(*model, {.density = 0.1});
  const BlockShape best = study::cheapest_of(costs)->block;
  const std::string note = choose_block(a, {});
  EXPECT_EQ(a.block, best);
  EXPECT_THAT(note, StartsWith("block size by planned cycles: " + std::to_string(best.rows) + "x"));
  for (const char* name : {" 1x1 ", " 4x4 ", " 8x8 ", " 16x16 "})
    EXPECT_THAT(note, HasSubstr(name));
}

TEST(ChooseBlock, CountsTheBlocksOfAFile) {
  const test::TemporaryFolder folder;
  LayerArguments a = small_layer();
  a.matrix = folder / "w.smtx";
  // Whole blocks of 8: smaller blocks have more meta-information, larger ones are half empty.
  io::write_smtx_file(a.matrix,
                      sparse::with_block(sparse::random_pattern(96, 64, {8, 8}, 0.1, 3), {1, 1}));
  choose_block(a, {});
  LayerArguments sized = a;
  const auto file = load_pattern(sized);
  const auto model = target_of(sized).expected(problem_of(sized));
  const auto costs = study::in_square_blocks(*model, {.pattern = &*file});
  EXPECT_EQ(study::cheapest_of(costs)->block, a.block);
}

TEST(PlannedCosts, RefuseAConstraintThatAsksForDense) {
  LayerArguments a = small_layer();
  a.plan_constraints = R"({"useDense": true})";
  EXPECT_THROW(target_of(a), Error);
}

TEST(ChooseBlock, LeavesABlockThatWasGiven) {
  LayerArguments a = small_layer();
  a.chooses_block = false;
  a.block = {4, 8};
  EXPECT_EQ(choose_block(a, {}), "");
  EXPECT_EQ(a.block, (BlockShape{4, 8}));
}

TEST(ChooseBlock, LeavesOutBlocksWithoutAPlan) {
  LayerArguments a = small_layer();
  a.partials_type = DataType::Half;
  a.matmul_options = R"({"popLibsParity": true})";  // PopLibs has no elements with half sums
  EXPECT_THAT(choose_block(a, {}), HasSubstr("1x1 has no plan"));
  EXPECT_FALSE(a.block.is_element());
}

TEST(ChooseBlock, OfThisComputerGoesByTheForecast) {
  LayerArguments a = small_layer();
  a.machine = device::kHostMachine;
  EXPECT_THAT(choose_block(a, {}),
              testing::AllOf(StartsWith("block size by forecast: "), HasSubstr(" ms, ")));
}

TEST(AutoBlockSize, IsNamedByPlansAndRunsOfBothMachines) {
  for (const char* machine : {"--machine=mk1", "--machine=host"})
    for (const char* command : {"plan", "run"}) {
      std::vector<std::string> words{TESSERA_TOOL, command, machine};
      words.insert(words.end(), kRandom.begin(), kRandom.end());
      const test::Outcome outcome = run_small(words);
      EXPECT_EQ(outcome.exit, 0) << outcome.err;
      EXPECT_THAT(outcome.out, testing::ContainsRegex("note +block size by .*: [0-9]+x"));
      words.push_back("--json");
      EXPECT_THAT(run_small(words).out, HasSubstr("\"block size by ")) << command << machine;
    }
}

TEST(AutoBlockSize, IsRefusedWhereThereIsNothingToChoose) {
  for (const char* more : {"--plan=p.json", "--block-rows=4"}) {
    std::vector<std::string> words{TESSERA_TOOL, "plan", more};
    words.insert(words.end(), kRandom.begin(), kRandom.end());
    EXPECT_EQ(run_small(words).exit, 2) << more;
  }
  const test::Outcome sweep = test::run({TESSERA_TOOL, "sweep", "--block-size=auto"});
  EXPECT_EQ(sweep.exit, 2);
  EXPECT_THAT(sweep.err, HasSubstr("auto"));
  const test::Outcome input =
      test::run({TESSERA_SPARSE_FC_LAYER, "--input-size=64", "--output-size=96", "--density=0.1",
                 "--input=s.npy", "--block-size=auto"});
  EXPECT_EQ(input.exit, 2);
}

}  // namespace
}  // namespace tessera::tools
