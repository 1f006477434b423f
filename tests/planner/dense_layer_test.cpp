#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "tessera/base/error.hpp"
#include "tessera/planner/explain.hpp"
#include "tessera/planner/no_fit.hpp"
#include "tessera/planner/plan_json.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/tests/planner/recorded_plans.hpp"

// Plans of layers with useDense: R without buckets, unless something is asked for that only buckets
// have.
namespace tessera::planner {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

PlannedLayer dense_layer(Dims size = {1, 512, 768, 64}) {
  PlannedLayer l;
  l.problem = {.size = size,
               .block = {16, 16},
               .density = 0.5,
               .data_type = DataType::Half,
               .grad_a = true,
               .grad_w = true};
  l.machine = device::machine_preset("gc200");
  l.options.constraints.use_dense = true;
  l.plan = plan_or_throw(l.problem, l.machine, l.options);
  return l;
}

TEST(DenseLayerPlan, IsTheDensePlanWithTheSumsOfTheLayer) {
  PlannedLayer l = dense_layer();
  for (const DataType sums : {DataType::Float, DataType::Half}) {
    l.problem.partials_type = sums;
    const PlanResult result = plan(l.problem, l.machine, l.options);
    ASSERT_EQ(result.status, PlanStatus::Found) << result.reason;
    EXPECT_TRUE(result.plan.use_dense);
    EXPECT_EQ(result.plan.dense,
              plan_dense_or_throw(l.problem, l.machine, {.partials_type = sums}));
    EXPECT_EQ(result.plan.cost, result.plan.dense->cost);
    EXPECT_LE(result.plan.tiles_used(), l.machine.tiles);
    EXPECT_GT(result.evaluations, 0);
  }
}

TEST(DenseLayerPlan, CostsLessThanRInLargeBlocks) {
  const PlannedLayer l = dense_layer();
  Options blocks = l.options;
  blocks.constraints.grad_w_exchange_buckets = false;
  EXPECT_LT(l.plan.cost.cycles, plan_or_throw(l.problem, l.machine, blocks).cost.cycles);
}

TEST(DenseLayerPlan, LeavesPinsParityAndOperandsAtHomeToRInLargeBlocks) {
  const PlannedLayer l = dense_layer();
  const std::function<void(Options&)> asks[] = {
      [](Options& o) { o.constraints.x = 4; },
      [](Options& o) { o.constraints.grad_w_exchange_buckets = true; },
      [](Options& o) { o.operand_placement = Placement::AtHome; }};
  for (const auto& ask : asks) {
    Options options = l.options;
    ask(options);
    const Plan plan = plan_or_throw(l.problem, l.machine, options);
    EXPECT_FALSE(plan.dense);
    EXPECT_TRUE(plan.use_dense);
  }
  Options parity = parity_options();
  parity.constraints.use_dense = true;
  EXPECT_FALSE(plan_or_throw(l.problem, l.machine, parity).dense);
}

TEST(DenseLayerPlan, SaysWhichMemoryIsShortAndWhatWouldFit) {
  PlannedLayer l = dense_layer();
  l.problem.size = {1, 4096, 4096, 16};
  l.problem.density = 1;
  l.machine.tiles = 16;
  const PlanResult result = plan(l.problem, l.machine, l.options);
  EXPECT_EQ(result.status, PlanStatus::NoPlan);
  const NoFit n = explain_no_fit(l.problem, l.machine, l.options);
  ASSERT_TRUE(n.cheapest);
  EXPECT_THROW(explain_no_fit(dense_layer().problem, dense_layer().machine, l.options), Error);
}

std::string error_of(const std::function<void(Json&)>& change) {
  Json document = Json::parse(plan_to_json(dense_layer()));
  change(document);
  try {
    plan_from_json(document.dump(), "f");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::BadInput);
    return error.what();
  }
  return "accepted";
}

TEST(DenseLayerPlan, IsSavedAndLoadedUnchanged) {
  for (const Dims size : {Dims{1, 512, 768, 64}, {3, 33, 17, 5}, {1, 8192, 8192, 4096}}) {
    const PlannedLayer l = dense_layer(size);
    ASSERT_TRUE(l.plan.dense);
    EXPECT_EQ(plan_from_json(plan_to_json(l), "f"), l);
  }
}

TEST(DenseLayerPlan, IsRefusedWhereAFileContradictsTheLayer) {
  EXPECT_EQ(error_of([](Json&) {}), "accepted");
  const auto first = [](Json& d) -> Json& { return d["plan"]["dense"]["passes"][0]; };
  EXPECT_THAT(error_of([&](Json& d) { first(d)["product"]["size"]["rows"] = 511; }),
              HasSubstr("the layer's own"));
  EXPECT_THAT(error_of([&](Json& d) { first(d)["weights"] = "above"; }), HasSubstr("weights"));
  EXPECT_THAT(error_of([&](Json& d) {
                first(d)["parts"]["rows"] = 5000;
                d["plan"]["partition"]["x"] = 5000;
              }),
              HasSubstr("parts"));
  EXPECT_THAT(error_of([&](Json& d) { first(d)["rounds"]["rows"] = 513; }), HasSubstr("rounds"));
  EXPECT_THAT(error_of([&](Json& d) { first(d)["rounds"]["inner"] = 2; }), HasSubstr("rounds"));
  EXPECT_THAT(error_of([&](Json& d) { d["plan"]["dense"]["passes"].erase(2); }),
              HasSubstr("plan.dense.passes.length is 2; it must be 3"));
  EXPECT_THAT(error_of([&](Json& d) { d["plan"]["dense"]["groups"] = 2; }),
              HasSubstr("the layer's own"));
  EXPECT_THAT(error_of([&](Json& d) { d["plan"]["use_dense"] = false; }),
              HasSubstr("the layer's own"));
  EXPECT_THAT(error_of([&](Json& d) { d["plan"]["cost"]["cycles"] = 1; }),
              HasSubstr("the sum of the terms"));
  EXPECT_THAT(error_of([&](Json& d) { d["options"]["planConstraints"]["useDense"] = false; }),
              HasSubstr("the options ask for buckets"));
  EXPECT_THAT(error_of([&](Json& d) {
                for (const char* dim : {"rows", "inner", "columns"})
                  first(d)["parts"][dim] = 1 << 20;
              }),
              HasSubstr("plan"));
}

TEST(DenseLayerPlan, IsExplainedWithItsTermsAndTheBestPlanInLargeBlocks) {
  const PlannedLayer l = dense_layer();
  const Explanation e = explain(l.problem, l.machine, l.options, nullptr, l.plan);
  EXPECT_TRUE(e.methods.without_buckets);
  ASSERT_FALSE(e.runners_up.empty());
  EXPECT_GT(e.runners_up.front().loses, Cycles(0));
  Cycles sum;
  for (const TermShare& t : e.terms) sum += t.cycles;
  EXPECT_EQ(sum, l.plan.cost.cycles);
  const std::string text = to_text(e);
  EXPECT_THAT(text, HasSubstr("winner     R dense, without buckets at "));
  EXPECT_THAT(text, HasSubstr("  R dense, without buckets: chosen\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("no finer cut")));
  EXPECT_TRUE(Json::parse(to_json(e)).is_object());
  PlannedLayer other = l;
  other.problem.size.z = 32;
  EXPECT_THROW(explain(other.problem, l.machine, l.options, nullptr, l.plan), Error);
}

}  // namespace
}  // namespace tessera::planner
