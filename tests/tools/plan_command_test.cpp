#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tessera/planner/dense_plan.hpp"
#include "tessera/planner/plan_json.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/report/plan_notes.hpp"
#include "tessera/tests/support/process.hpp"

namespace tessera::test {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Outcome tessera_plan(std::vector<std::string> arguments, const std::string& out_path = {}) {
  arguments.insert(arguments.begin(), {TESSERA_TOOL, "plan"});
  return run(arguments, out_path);
}

std::vector<std::string> small_plan(std::vector<std::string> more = {}) {
  std::vector<std::string> all{"--input-size=48", "--output-size=32", "--density=0.25",
                               "--batch-size=8", "--tiles-per-ipu=8"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

planner::PlannedLayer small_layer() {
  planner::PlannedLayer layer;
  layer.problem.size = {1, 32, 48, 8};
  layer.problem.density = 0.25;
  layer.problem.grad_a = layer.problem.grad_w = true;
  layer.machine = device::machine_preset("gc200");
  layer.machine.tiles = 8;
  layer.plan = planner::plan_or_throw(layer.problem, layer.machine, layer.options);
  return layer;
}

void expect_error(const std::vector<std::string>& arguments, int exit, const std::string& says) {
  const Outcome outcome = tessera_plan(arguments);
  EXPECT_EQ(outcome.exit, exit) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr(says));
}

TEST(TesseraPlan, PrintsThePlanOfTheLibrary) {
  const Outcome outcome = tessera_plan(small_plan());
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_THAT(outcome.out,
              HasSubstr("layer      g1 x32 y48 z8, block 1x1, density 0.25, half to float, fwd + "
                        "grad_a + grad_w\nmachine    gc200: 8 tiles of 638976 bytes\n" +
                        to_string(small_layer().plan) + "verdict    "));
}

// PopSparse's cost model leaves out costs that the dense plan has.
TEST(TesseraPlan, ComparesWithDenseUnlessThePlanIsInAnotherCostModel) {
  EXPECT_THAT(tessera_plan(small_plan({R"(--plan-constraints={"useDense": false})"})).out,
              HasSubstr("dense ("));
  EXPECT_THAT(tessera_plan(small_plan({R"(--plan-constraints={"useDense": true})"})).out,
              HasSubstr("R dense, float sums, Fwd "));
  EXPECT_THAT(tessera_plan(small_plan({"--cost-model=popsparse"})).out, Not(HasSubstr("verdict")));
}

TEST(TesseraPlan, SaysUpToWhichDensityItPaysAndWhatWouldWin) {
  const Outcome outcome = tessera_plan(small_plan({"--json"}));
  const auto verdict = nlohmann::json::parse(outcome.out)["verdict"];
  EXPECT_EQ(verdict["how"], "modelled");
  const double up_to = verdict["pays_up_to_density"];
  EXPECT_GE(up_to, 0);
  EXPECT_EQ(verdict["would_win"].is_null(), verdict["sparse_wins"].get<bool>());
  const Outcome full = tessera_plan({"--input-size=48", "--output-size=32", "--density=0.9",
                                     "--batch-size=8", "--tiles-per-ipu=8", "--json"});
  const auto loses = nlohmann::json::parse(full.out)["verdict"];
  EXPECT_FALSE(loses["sparse_wins"]);
  EXPECT_EQ(loses["pays_up_to_density"], verdict["pays_up_to_density"]);
  for (const auto& remedy : loses["would_win"]) EXPECT_GT(remedy["dense_over_sparse"], 1);
}

TEST(TesseraPlan, ShowsControlCharactersInAMachinesNameAsEscapes) {
  const TemporaryFolder folder;
  const std::string file = folder.write(
      "machine.json", R"({"base": "gc200", "name": "red\u001b[31m\nPASS\u202e", "tiles": 8})");
  using Words = std::vector<std::string>;
  const Words layer{"--input-size=48", "--output-size=32", "--density=0.25", "--machine=" + file};
  for (const Words& more : {Words{}, Words{"--explain"}}) {
    Words words = layer;
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = tessera_plan(words);
    EXPECT_EQ(outcome.exit, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("machine    red\\x1b[31m\\x0aPASS\\xe2\\x80\\xae: 8 tiles"));
    EXPECT_THAT(outcome.out, Not(HasSubstr("\x1b")));
    EXPECT_THAT(outcome.out, Not(HasSubstr("\nPASS")));
  }
}

TEST(TesseraPlan, ExplainsWithThePlanOfTheDenseBaseline) {
  const planner::PlannedLayer layer = small_layer();
  const std::string dense = to_string(planner::plan_dense_or_throw(layer.problem, layer.machine));
  const std::string sparse = R"(--plan-constraints={"useDense": false})";
  EXPECT_THAT(tessera_plan(small_plan({"--explain", sparse})).out,
              HasSubstr(dense.substr(0, dense.find("Fwd"))));
  EXPECT_THAT(tessera_plan(small_plan({sparse})).out, Not(HasSubstr("\ndense  ")));
}

TEST(TesseraPlan, PrintsJsonThatIsThatPlan) {
  const Outcome outcome = tessera_plan(small_plan({"--json"}));
  EXPECT_EQ(planner::plan_from_json(report::without_notes(outcome.out), "stdout"), small_layer());
}

TEST(TesseraPlan, TakesEveryOptionIntoTheProblemAndTheOptions) {
  const Outcome outcome = tessera_plan(
      {"--input-size=64", "--output-size=96", "--density=0.5", "--batch-size=16", "--block-rows=4",
       "--block-cols=8", "--groups=2", "--data-type=half", "--partials-type=half",
       "--single-phase=wu", "--machine=bow", "--cost-model=popsparse", "--json",
       "--matmul-options={\"availableMemoryProportion\": 0.5, \"searchLimit\": 1000000}",
       "--plan-constraints={\"partition\": {\"x\": 2}}"});
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  const planner::PlannedLayer layer =
      planner::plan_from_json(report::without_notes(outcome.out), "stdout");
  Problem problem{.size = {2, 96, 64, 16},
                  .block = {4, 8},
                  .density = 0.5,
                  .data_type = DataType::Half,
                  .partials_type = DataType::Half,
                  .grad_w = true};
  EXPECT_EQ(layer.problem, problem);
  EXPECT_EQ(layer.machine, device::machine_preset("bow"));
  planner::Options options;
  options.available_memory_proportion = 0.5;
  options.search_limit = 1'000'000;
  options.constraints.x = 2;
  options.poplibs_parity = true;
  EXPECT_EQ(layer.options, options);
  EXPECT_EQ(layer.plan.partition.x, 2);
}

TEST(TesseraPlan, TakesTheLayersKeysOutOfPopSparsesOptions) {
  const auto planned = [](const char* options) {
    const Outcome outcome =
        tessera_plan({"--input-size=64", "--output-size=64", "--density=0.5", "--block-size=8",
                      "--json", std::string("--matmul-options=") + options});
    EXPECT_EQ(outcome.exit, 0) << outcome.err;
    return planner::plan_from_json(report::without_notes(outcome.out), "stdout");
  };
  const planner::PlannedLayer typed = planned(
      R"({"doGradAPass": true, "doGradWPass": false, "partialsType": "half", "searchLimit": 1000})");
  EXPECT_TRUE(typed.problem.grad_a);
  EXPECT_FALSE(typed.problem.grad_w);
  EXPECT_EQ(typed.problem.partials_type, DataType::Half);
  EXPECT_EQ(typed.options.search_limit, 1000);
  const planner::PlannedLayer texts = planned(R"({"doGradAPass": "false", "doGradWPass": "true"})");
  EXPECT_FALSE(texts.problem.grad_a);
  EXPECT_TRUE(texts.problem.grad_w);
  EXPECT_EQ(texts.problem.partials_type, DataType::Float);
  expect_error(small_plan({R"(--matmul-options={"doGradAPass": 1})"}), 2,
               "--matmul-options: doGradAPass is 1; it must be true or false");
  expect_error(small_plan({R"(--matmul-options={"partialsType": "int"})"}), 2,
               "partialsType is \"int\"; it must be float or half");
  expect_error(small_plan({"--matmul-options=[1]"}), 2, "--matmul-options");
  expect_error(small_plan({"--matmul-options={"}), 2, "--matmul-options: not JSON");
}

TEST(TesseraPlan, LoadsAPlanAndPrintsItAgain) {
  const TemporaryFolder folder;
  const std::string file = folder / "plan.json";
  const Outcome written = tessera_plan(small_plan({"--json", "--output=" + file}));
  EXPECT_EQ(written.exit, 0) << written.err;
  EXPECT_EQ(written.out, "");
  EXPECT_EQ(tessera_plan({"--plan=" + file}).out, tessera_plan(small_plan()).out);
  EXPECT_EQ(tessera_plan({"--plan=" + file, "--json"}).out, read_file(file));
  EXPECT_EQ(tessera_plan(small_plan({"--plan=" + file})).exit, 0) << "the layer it was made for";
}

TEST(TesseraPlan, RefusesAPlanOfAnotherLayerOrMachine) {
  const TemporaryFolder folder;
  const std::string file = folder.write("plan.json", planner::plan_to_json(small_layer()));
  const std::string plan = "--plan=" + file;
  expect_error(small_plan({plan, "--single-phase=fwd"}), 2,
               "the plan is for another problem: problem/grad_a is true there and false here");
  expect_error({plan, "--input-size=48", "--output-size=32", "--density=0.2", "--batch-size=8"}, 2,
               "problem/density is 0.25 there and 0.2 here");
  expect_error({plan, "--machine=bow"}, 2, "another machine: machine/name is \"gc200\" there");
  expect_error({plan, "--batch-size=8"}, 2, "--input-size");
  expect_error({plan, "--cost-model=popsparse"}, 2, "--cost-model");
  expect_error({plan, "--matmul-options={}"}, 2, "--matmul-options");
  expect_error({"--plan=" + folder.write("cut.json", "{")}, 3, "cut.json: not JSON");
  expect_error({"--plan=" + folder / "absent.json"}, 3, "absent.json");
}

TEST(TesseraPlan, GivesThePatternOfAMatrixToThePlanner) {
  const TemporaryFolder folder;
  // Two full rows of eight: room for the average would spill.
  const std::string skewed = "--matrix=" + folder.write("skewed.smtx",
                                                        "8, 8, 16\n0 8 16 16 16 16 16 16 16\n"
                                                        "0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7\n");
  const auto plan = [&](const std::vector<std::string>& layer) {
    std::vector<std::string> all = layer;
    all.insert(all.end(), {"--batch-size=4", "--json", "--tiles-per-ipu=4",
                           "--plan-constraints={\"partition\": {\"x\": 4, \"y\": 1, \"z\": 1}}"});
    const Outcome outcome = tessera_plan(all);
    EXPECT_EQ(outcome.exit, 0) << outcome.err;
    return planner::plan_from_json(report::without_notes(outcome.out), "stdout");
  };
  const planner::PlannedLayer of_file = plan({skewed});
  const planner::PlannedLayer of_sizes =
      plan({"--input-size=8", "--output-size=8", "--density=0.25"});
  EXPECT_EQ(of_file.problem, of_sizes.problem);
  EXPECT_GE(of_file.plan.nonzeros_per_bucket, 16) << "both full rows lie on one tile";
  EXPECT_LT(of_sizes.plan.nonzeros_per_bucket, of_file.plan.nonzeros_per_bucket);
}

TEST(TesseraPlan, AnswersTheSameThroughACacheAndFillsIt) {
  const TemporaryFolder folder;
  const std::string cache = "--plan-cache=" + folder / "cache";
  const Outcome plain = tessera_plan(small_plan());
  for (int i = 0; i < 2; ++i) EXPECT_EQ(tessera_plan(small_plan({cache})).out, plain.out);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path() / "cache"), {}), 1);
  expect_error(small_plan({"--plan-cache=" + folder.write("file", "")}), 2, "file is no folder");
}

TEST(TesseraPlan, UsageErrorsNameTheOptionTheValueAndTheRange) {
  expect_error({}, 2, "--matrix");
  expect_error({"--input-size=48", "--output-size=32"}, 2, "--density");
  expect_error({"--input-size=48", "--output-size=32", "--density=1.5"}, 2, "--density");
  expect_error(small_plan({"--tiles-per-ipu=0"}), 2, "--tiles-per-ipu");
  expect_error(small_plan({"--cost-model=mine"}), 2, "--cost-model");
  expect_error(small_plan({"--on-no-fit=pray"}), 2, "--on-no-fit");
  expect_error(small_plan({"--on-no-fit=fail", "--plan=x.json"}), 2, "--on-no-fit");
  expect_error(small_plan({"--block-rows=4097"}), 2,
               "--block-rows: the value is 4097; it must be a whole number in 1..4096");
  expect_error(small_plan({"--block-rows=4", "--block-size=4"}), 2, "--block-size");
  expect_error(small_plan({"--table=x.tsv"}), 2, "--table");
  expect_error(small_plan({"--partials-type=half", "--cost-model=popsparse"}), 2,
               "element-wise sparsity has float partials only in PopLibs");
  expect_error(small_plan({"--matmul-options={\"sharedBucket\": true}"}), 2,
               "--matmul-options: sharedBucket is not known; the keys are availableMemory");
  expect_error(small_plan({"--matmul-options={\"searchLimit\": \"all\"}"}), 2,
               "searchLimit is \"all\"; it must be a whole number in 1..2^62");
  expect_error(small_plan({"--plan-constraints={\"partition\": {\"x\": 9}}"}), 2,
               "planConstraints.partition.x is 9; it must be in 1..8");
  expect_error(small_plan({"--groups=9"}), 2, "groups is 9; it must be in 1..8");
  EXPECT_EQ(run({TESSERA_TOOL}).exit, 2);
  EXPECT_EQ(run({TESSERA_TOOL, "plam"}).exit, 2);
}

TEST(TesseraPlan, HelpNamesTheCommandAndItsOptions) {
  EXPECT_THAT(run({TESSERA_TOOL, "--help"}).out, HasSubstr("plan"));
  const Outcome help = tessera_plan({"--help-all"});
  EXPECT_EQ(help.exit, 0);
  for (const char* word :
       {"--table", "--cost-model", "--json", "--output", "--plan", "--plan-cache", "--on-no-fit",
        "--explain", "--matmul-options", "--plan-constraints", "Exit codes"})
    EXPECT_THAT(help.out, HasSubstr(word));
}

TEST(TesseraPlan, ResultsThatCannotBeWrittenAreAnError) {
  EXPECT_EQ(tessera_plan(small_plan(), "/dev/full").exit, 6);
  expect_error(small_plan({"--output=/dev/full"}), 6,
               "/dev/full: cannot be written: No space left on device");
  expect_error(small_plan({"--output=/nowhere/plan.txt"}), 2, "/nowhere/plan.txt");
}

TEST(TesseraPlan, RunsInSparseFcLayerForPatternsThatFit) {
  const TemporaryFolder folder;
  const std::string file = folder.write("plan.json", planner::plan_to_json(small_layer()));
  const auto fc_layer = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = small_plan(more);
    all.insert(all.begin(), TESSERA_SPARSE_FC_LAYER);
    return run(all);
  };
  const Outcome planned = fc_layer({"--plan=" + file});
  EXPECT_EQ(planned.exit, 0) << planned.err;
  EXPECT_THAT(planned.out, HasSubstr("PASS: "));
  const Outcome other = fc_layer({"--plan=" + file, "--data-type=float"});
  EXPECT_EQ(other.exit, 2);
  EXPECT_THAT(other.err, HasSubstr("problem/data_type is \"half\" there and \"float\" here"));
  const std::string cache = "--plan-cache=" + folder / "cache";
  const Outcome plain = fc_layer({});
  for (int i = 0; i < 2; ++i) EXPECT_EQ(fc_layer({cache}).out, plain.out);
}

}  // namespace
}  // namespace tessera::test
