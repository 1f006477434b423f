#include "tessera/planner/plan_json.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/random.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/tests/planner/recorded_plans.hpp"

namespace tessera::planner {
namespace {

using Json = nlohmann::ordered_json;
using testing::AllOf;
using testing::HasSubstr;

PlannedLayer small_layer() {
  PlannedLayer layer;
  layer.problem.size = {1, 64, 48, 16};
  layer.problem.density = 0.25;
  layer.problem.grad_a = layer.problem.grad_w = true;
  layer.machine = device::machine_preset("gc200");
  layer.machine.tiles = 32;
  layer.options.constraints.use_dense = false;
  layer.plan = plan_or_throw(layer.problem, layer.machine, layer.options);
  return layer;
}

void expect_round_trip(const PlannedLayer& layer) {
  EXPECT_EQ(plan_from_json(plan_to_json(layer), "test"), layer);
}

TEST(PlanJson, LoadsEveryRecordedPlanBackAsItWas) {
  int plans = 0;
  for (const RecordedPlan& row : read_recorded_plans()) {
    SCOPED_TRACE(row.text("id"));
    PlannedLayer layer{row.problem(), device::machine_preset("gc200"), parity_options(), {}};
    const PlanResult result = plan(layer.problem, layer.machine, layer.options);
    if (!result.has_plan) continue;
    layer.plan = result.plan;
    expect_round_trip(layer);
    ++plans;
  }
  EXPECT_EQ(plans, 393);
}

Problem random_problem(Random& random) {
  const BlockShape blocks[] = {{1, 1}, {4, 4}, {8, 8}, {16, 16}, {3, 5}, {1, 4}};
  Problem p;
  p.block = blocks[random.below(6)];
  p.size = {1 + random.below(3), p.block.rows * (1 + random.below(60)),
            p.block.cols * (1 + random.below(60)), 1 + random.below(70)};
  p.density = random.unit() * random.unit();
  p.data_type = random.below(2) == 0 ? DataType::Half : DataType::Float;
  p.grad_a = random.below(2) == 0;
  p.grad_w = random.below(2) == 0;
  return p;
}

TEST(PlanJson, LoadsRandomPlansBackAsTheyWere) {
  constexpr std::uint64_t kPlanSeed = 11;
  Random random(kPlanSeed);
  for (int i = 0; i < 200; ++i) {
    SCOPED_TRACE("seed 11, layer " + std::to_string(i));
    PlannedLayer layer;
    layer.problem = random_problem(random);
    layer.machine = device::machine_preset(device::machine_names()[i % 3]);
    layer.machine.tiles = 3 + random.below(layer.machine.tiles - 2);
    layer.options.available_memory_proportion = 0.3 + 0.7 * random.unit();
    layer.options.meta_info_bucket_oversize_proportion = random.unit() / 3;
    layer.options.shared_buckets = random.below(2) == 0;
    const PlanResult result = plan(layer.problem, layer.machine, layer.options);
    if (!result.has_plan) continue;
    layer.plan = result.plan;
    expect_round_trip(layer);
  }
}

TEST(PlanJson, KeepsEveryOption) {
  PlannedLayer layer = small_layer();
  Options& o = layer.options;
  o = {.available_memory_proportion = 0.1 + 0.2,
       .meta_info_bucket_oversize_proportion = 1.0 / 3,
       .bucket_confidence = 0.75,
       .shared_buckets = false,
       .enable_structured_rearrangements = false,
       .partitioner_force_bucket_spills = true,
       .search_limit = std::int64_t{1} << 62,
       .constraints = {},
       .poplibs_parity = false};
  o.constraints.x = layer.plan.partition.x;
  o.constraints.grad_w_exchange_buckets = false;
  o.constraints.use_dense = false;
  layer.plan = plan_or_throw(layer.problem, layer.machine, o);
  expect_round_trip(layer);
}

TEST(PlanJson, WritesOptionsAsOptionTextHasThem) {
  PlannedLayer layer = small_layer();
  layer.options.poplibs_parity = true;
  layer.options.search_limit = 12345;
  layer.options.constraints.y = 1;
  layer.options.constraints.grad_w_exchange_buckets = true;
  const std::string options = Json::parse(plan_to_json(layer))["options"].dump();
  EXPECT_EQ(parse_options(options, "test"), layer.options);
}

TEST(PlanJson, NamesTheCostByPassAndTerm) {
  const PlannedLayer layer = small_layer();
  const Json cost = Json::parse(plan_to_json(layer))["plan"]["cost"];
  EXPECT_EQ(cost["cycles"], layer.plan.cost.cycles.value);
  ASSERT_EQ(cost["passes"].size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    const PassCost& pass = layer.plan.cost.passes[i];
    EXPECT_EQ(cost["passes"][i]["pass"], to_string(pass.pass));
    ASSERT_EQ(cost["passes"][i]["terms"].size(), pass.terms.size());
    EXPECT_EQ(cost["passes"][i]["terms"][0]["name"], to_string(pass.terms[0].name));
    EXPECT_EQ(cost["passes"][i]["terms"][0]["cycles"], pass.terms[0].cycles.value);
  }
}

// The layer's text after a change; the message it is refused with.
template <class Change>
std::string message_after(Change&& change) {
  Json document = Json::parse(plan_to_json(small_layer()));
  change(document);
  try {
    plan_from_json(document.dump(), "my.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::BadInput) << error.what();
    return error.what();
  }
  return "accepted";
}

std::string message_with(const char* path, const Json& value) {
  return message_after([&](Json& j) { j[Json::json_pointer(path)] = value; });
}

TEST(PlanJson, RefusesWrongTypesAndRangesByPathValueAndRange) {
  EXPECT_EQ(message_with("/plan/partition/x", "many"),
            "my.json: plan.partition.x is \"many\"; it must be a whole number in 1..2147483647");
  EXPECT_EQ(message_with("/plan/partition/x", 0),
            "my.json: plan.partition.x is 0; it must be a whole number in 1..2147483647");
  EXPECT_THAT(message_with("/plan/partition/x", 2.5), HasSubstr("plan.partition.x is 2.5; "));
  EXPECT_THAT(message_with("/plan/partition/x", std::uint64_t{1} << 63),
              HasSubstr("plan.partition.x is 9.223372036854776e+18; "));
  EXPECT_THAT(message_with("/plan/nonzeros_per_bucket", -1), HasSubstr("0..9007199254740992"));
  EXPECT_THAT(message_with("/plan/use_dense", 1),
              HasSubstr("plan.use_dense is 1; it must be true"));
  EXPECT_THAT(message_with("/plan/fwd", "Fast"),
              HasSubstr("plan.fwd is \"Fast\"; it must be one of ElementFwd, ElementGradA"));
  EXPECT_THAT(message_with("/plan/cost/passes/1/terms/0/cycles", "x"),
              HasSubstr("plan.cost.passes[1].terms[0].cycles is \"x\""));
  EXPECT_THAT(
      message_with("/plan/cost/passes/1/terms/0/name", "sums"),
      HasSubstr(
          "terms[0].name is \"sums\"; it must be one of re-home values, transpose operand, "));
  EXPECT_THAT(message_with("/plan/cost/passes/0", 3), HasSubstr("passes[0] is 3; it must be an o"));
  EXPECT_THAT(message_with("/plan/cost/passes", 3), HasSubstr("passes is 3; it must be an array"));
  EXPECT_THAT(message_with("/problem/density", 1.5),
              HasSubstr("density is 1.5; it must be in 0..1"));
  EXPECT_THAT(message_with("/problem/density", "1"), HasSubstr("must be a finite number"));
  EXPECT_THAT(message_with("/problem/data_type", "int"), HasSubstr("one of float, half"));
  EXPECT_THAT(message_with("/machine/tiles", 0),
              HasSubstr("my.json: tiles is 0; it must be a whole number in 1..1048576"));
  EXPECT_THAT(message_with("/machine", 0), HasSubstr("my.json"));
  EXPECT_THAT(message_with("/options/availableMemoryProportion", 1.5), HasSubstr("(0, 1]"));
  EXPECT_EQ(message_with("/schema_version", "2"),
            "my.json: schema_version is \"2\"; it must be a whole number in "
            "-9223372036854775808..9223372036854775807");
}

// As the first version wrote it: with options that this one does not have.
TEST(PlanJson, RefusesFilesOfOtherVersionsBeforeItReadsTheirKeys) {
  for (const int version : {1, 2, 3, 5})
    EXPECT_EQ(message_after([&](Json& j) {
                j["schema_version"] = version;
                j["options"]["partitioner.optimiseForSpeed"] = true;
                j["machine"]["voltage"] = 1;
              }),
              "my.json: schema_version is " + std::to_string(version) +
                  "; it must be 4, the one this version reads; plan the layer again");
}

TEST(PlanJson, RefusesUnknownMissingAndDoubleKeysByPath) {
  EXPECT_THAT(message_with("/plan/cost/colour", 1),
              HasSubstr("plan.cost.colour is not known (value 1); the keys are cycles, temp"));
  EXPECT_THAT(message_with("/colour", 1), HasSubstr("my.json: colour is not known"));
  EXPECT_THAT(message_with("/options/sharedBucket", true),
              HasSubstr("options.sharedBucket is not"));
  EXPECT_THAT(message_with("/options/planConstraints/partition/w", 1), HasSubstr("partition.w is"));
  EXPECT_THAT(message_with("/machine/tilse", 1), HasSubstr("tilse"));
  EXPECT_EQ(message_after([](Json& j) { j["plan"].erase("grain"); }),
            "my.json: plan.grain is missing; it must be given");
  EXPECT_THAT(message_after([](Json& j) { j.erase("machine"); }), HasSubstr("machine is missing"));
  EXPECT_THAT(message_after([](Json& j) { j["options"].erase("bucketConfidence"); }),
              HasSubstr("options.bucketConfidence is missing"));
  EXPECT_THAT(message_after([](Json& j) { j = 3; }), HasSubstr("the text is 3; it must be an obj"));
  EXPECT_THAT([] { plan_from_json(R"({"plan": {"x": 1, "x": 2}})", "a.json"); },
              testing::ThrowsMessage<Error>(HasSubstr("a.json: key \"x\" of plan is given twice")));
  EXPECT_THAT([] { plan_from_json("{", "a.json"); },
              testing::ThrowsMessage<Error>(HasSubstr("a.json: not JSON")));
}

TEST(PlanJson, RefusesPlansThatCannotBeOfTheirProblem) {
  EXPECT_THAT(message_with("/plan/partition/x", 64),
              AllOf(HasSubstr("plan.partition is g1 x64"), HasSubstr("1..32 tiles in all")));
  EXPECT_THAT(message_with("/plan/partition/g", 2), HasSubstr("partition.g is 2; it must be 1, a"));
  EXPECT_THAT(message_after([](Json& j) {
                j["plan"]["partition"] = {{"g", 1}, {"x", 1}, {"y", 1}, {"z", 5}};
              }),
              HasSubstr("plan.partition.z is 5; it must be a count that cuts 4 grains"));
  EXPECT_THAT(message_after([](Json& j) {
                j["plan"]["partition"] = {{"g", 1}, {"x", 31}, {"y", 1}, {"z", 1}};
              }),
              HasSubstr("plan.partition.x is 31; it must be a count that cuts 64 grains"));
  EXPECT_THAT(message_with("/plan/fwd", "BlockFwd"),
              HasSubstr("must be ElementFwd for this block"));
  EXPECT_THAT(message_with("/plan/grad_a", "ElementGradW"), HasSubstr("plan.grad_a"));
  EXPECT_THAT(message_with("/plan/block/rows", 2), HasSubstr("plan"));
  EXPECT_THAT(message_with("/plan/grain/x", 2), HasSubstr("plan.grain.x is 2; it must be 1, the"));
  EXPECT_THAT(message_with("/plan/grain/z", 2),
              AllOf(HasSubstr("grain g1 x1 y1 z2"), HasSubstr("a combination that is tried")));
  EXPECT_THAT(message_with("/options/planConstraints/useDense", true),
              HasSubstr("a combination that is"));
  EXPECT_THAT(message_with("/options/planConstraints/partition/x", 1),
              HasSubstr("it must be 1, as the options pin it"));
  EXPECT_THAT(message_with("/plan/nonzeros_per_bucket", 400'000),
              HasSubstr("bytes of values and words; it must be 0..638976, a tile's memory"));
  EXPECT_THAT(message_with("/plan/fwd_meta_words", 400'000), HasSubstr("plan.bucket is 8"));
  EXPECT_THAT(message_with("/plan/cost/cycles", 1), HasSubstr("the sum of the terms"));
  EXPECT_THAT(message_with("/plan/cost/temp", 1), HasSubstr("the largest of the terms"));
  EXPECT_THAT(message_after([](Json& j) {
                j["plan"]["grad_w_exchange_buckets"] = false;  // as layers without GradW
                j["problem"]["grad_w"] = false;
              }),
              HasSubstr("cost.passes.length is 3; it must"));
  EXPECT_THAT(message_with("/plan/cost/passes/1/pass", "GradW"), HasSubstr("it must be GradA"));
}

// Every prefix of a file, as a run that was killed leaves it.
TEST(PlanJson, RefusesEveryTextThatWasCutShort) {
  const std::string text = plan_to_json(small_layer());
  for (std::size_t length = 0; length + 2 < text.size(); length += 37)
    EXPECT_THROW(plan_from_json(text.substr(0, length), "test"), Error) << length;
}

// Whatever a file holds, it is a sound plan or an error of ours.
TEST(PlanJson, RefusesOrReadsTextsWithRandomlyChangedBytes) {
  const std::string text = plan_to_json(small_layer());
  const std::string_view bytes = "0123456789-.eE\"{}[],:tfn \xff";
  Random random(5);
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string changed = text;
    for (std::int64_t n = 1 + random.below(2); n > 0; --n)
      changed[std::size_t(random.below(std::ssize(text)))] =
          bytes[std::size_t(random.below(std::ssize(bytes)))];
    try {
      const PlannedLayer layer = plan_from_json(changed, "test");
      EXPECT_LE(layer.plan.tiles_used(), layer.machine.tiles) << "seed 5, text " << i;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::BadInput) << "seed 5, text " << i;
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
}

TEST(PlanJson, NamesTheFirstDifferenceFromTheLayerAskedFor) {
  const PlannedLayer layer = small_layer();
  EXPECT_NO_THROW(check_plan_is_for(layer, layer.problem, layer.machine, "my.json"));
  Problem wider = layer.problem;
  wider.size.z = 32;
  EXPECT_THAT([&] { check_plan_is_for(layer, wider, layer.machine, "my.json"); },
              testing::ThrowsMessage<Error>(
                  HasSubstr("my.json: the plan is for another problem: problem/size/z is 16 there "
                            "and 32 here")));
  device::Machine slower = layer.machine;
  slower.clock_hz = 1e9;
  EXPECT_THAT(
      [&] { check_plan_is_for(layer, layer.problem, slower, "my.json"); },
      testing::ThrowsMessage<Error>(HasSubstr("another machine: machine/clock_hz is 1325000000")));
}

TEST(PlanJson, RefusesToWriteNamesThatJsonCannotHold) {
  PlannedLayer layer = small_layer();
  layer.machine.name = "bow\xff";
  EXPECT_THAT([&] { plan_to_json(layer); },
              testing::ThrowsMessage<Error>(HasSubstr("is not UTF-8")));
}

}  // namespace
}  // namespace tessera::planner
