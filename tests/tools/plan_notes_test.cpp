#include "tessera/report/plan_notes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/planner/dense_plan.hpp"
#include "tessera/planner/explain.hpp"
#include "tessera/planner/plan_json.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/tests/support/process.hpp"

namespace tessera::tools {
namespace {

using testing::HasSubstr;

planner::PlannedLayer small_layer() {
  planner::PlannedLayer layer;
  layer.problem.size = {1, 32, 48, 8};
  layer.problem.density = 0.25;
  layer.machine = device::machine_preset("gc200");
  layer.machine.tiles = 8;
  layer.options = planner::sparse_options();
  layer.plan = planner::plan_or_throw(layer.problem, layer.machine, layer.options);
  return layer;
}

std::string explained(const planner::PlannedLayer& layer) {
  return to_text(
      planner::explain(layer.problem, layer.machine, layer.options, nullptr, layer.plan));
}

test::Outcome plan_small(std::vector<std::string> more) {
  more.insert(more.begin(), {TESSERA_TOOL, "plan", "--input-size=48", "--output-size=32",
                             "--density=0.25", "--batch-size=8", "--tiles-per-ipu=8",
                             "--single-phase=fwd", R"(--plan-constraints={"useDense": false})"});
  return test::run(more);
}

TEST(PlanNotes, ComeOffAsTheyWentOn) {
  const planner::PlannedLayer layer = small_layer();
  const std::string plain = planner::plan_to_json(layer);
  EXPECT_EQ(report::with_notes(plain, {}), plain);
  for (const report::PlanNotes& notes :
       {report::PlanNotes{"in words", ""}, report::PlanNotes{"", R"({"terms": []})"},
        report::PlanNotes{"in words", R"({"terms": []})"},
        report::PlanNotes{.relaxation = "", .verdict = R"({"text": "pays"})"}}) {
    const std::string noted = report::with_notes(plain, notes);
    EXPECT_THAT(noted, HasSubstr(notes.relaxation));
    EXPECT_NE(noted, plain);
    EXPECT_THROW(planner::plan_from_json(noted, "noted"), Error) << "the library knows no notes";
    EXPECT_EQ(planner::plan_from_json(report::without_notes(noted), "noted"), layer);
  }
}

TEST(PlanNotes, LeaveATextWithoutThemAlone) {
  for (const char* text : {"", "{", "[1]", "{\"a\":  1}", "{\"plan\": {\"explanation\": 1}}"})
    EXPECT_EQ(report::without_notes(text), text);
  EXPECT_EQ(report::without_notes(R"({"a": 1, "explanation": {"b": 2}})"), R"({"a":1})");
}

TEST(PlanExplanation, FollowsThePlan) {
  const test::Outcome plain = plan_small({}), with = plan_small({"--explain"});
  EXPECT_EQ(with.exit, 0) << with.err;
  const std::size_t end = plain.out.find("verdict");
  ASSERT_NE(end, std::string::npos) << plain.out;
  const std::string plan = plain.out.substr(0, end), verdict = plain.out.substr(end);
  const planner::PlannedLayer layer = small_layer();
  // Lines that are too long for a page go on in the next one.
  const auto unwrapped = [](const std::string& text) {
    return std::regex_replace(text, std::regex("\n( {6}| {11})(?! )"), " ");
  };
  EXPECT_EQ(
      unwrapped(with.out),
      plan + "\n" + explained(layer) +
          "spilling   a uniform random pattern of this density spills with probability 0.0001\n" +
          to_string(planner::plan_dense_or_throw(layer.problem, layer.machine)) +
          unwrapped(verdict));
}

TEST(PlanExplanation, SaysHowMuchCapacityMakesSpillsRare) {
  const test::Outcome tight =
      test::run({TESSERA_TOOL, "plan", "--input-size=512", "--output-size=512", "--density=0.01",
                 "--batch-size=64", "--tiles-per-ipu=64", "--single-phase=fwd", "--explain",
                 "--matmul-options={\"metaInfoBucketOversizeProportion\":0.02}",
                 "--plan-constraints={\"useDense\":false}"});
  EXPECT_EQ(tight.exit, 0) << tight.err;
  EXPECT_THAT(tight.out, HasSubstr("spills with probability 1; with 1.27 times the"));
}

TEST(PlanExplanation, IsAMemberOfTheJsonThatReadersSkip) {
  const test::TemporaryFolder folder;
  const std::string file = folder / "plan.json";
  const test::Outcome written = plan_small({"--explain", "--json", "--output=" + file});
  EXPECT_EQ(written.exit, 0) << written.err;
  const std::string text = test::read_file(file);
  EXPECT_THAT(text, HasSubstr("\"explanation\": {"));
  EXPECT_EQ(planner::plan_from_json(report::without_notes(text), file), small_layer());
  EXPECT_EQ(test::run({TESSERA_TOOL, "plan", "--plan=" + file}).out, plan_small({}).out);
  EXPECT_EQ(test::run({TESSERA_TOOL, "plan", "--plan=" + file, "--explain"}).out,
            plan_small({"--explain"}).out);
}

TEST(PlanExplanation, KnowsThePatternOfAMatrix) {
  const test::TemporaryFolder folder;
  const std::string matrix = "--matrix=" + folder.write("skewed.smtx",
                                                        "8, 8, 16\n0 8 16 16 16 16 16 16 16\n"
                                                        "0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7\n");
  const test::Outcome outcome =
      test::run({TESSERA_TOOL, "plan", matrix, "--batch-size=4", "--tiles-per-ipu=4", "--explain"});
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\nrunners-up\n"));
  EXPECT_THAT(outcome.out, testing::Not(HasSubstr("\nspilling ")));
}

TEST(PlanExplanation, GoesWithNoTable) {
  const test::Outcome outcome = test::run({TESSERA_TOOL, "plan", "--table=x.tsv", "--explain"});
  EXPECT_EQ(outcome.exit, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--explain"));
}

}  // namespace
}  // namespace tessera::tools
