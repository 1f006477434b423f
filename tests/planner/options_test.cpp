#include "tessera/planner/options.hpp"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "tessera/base/error.hpp"

namespace tessera::planner {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string message_of(std::string_view json) {
  try {
    parse_options(json, "--matmul-options");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
    return error.what();
  }
  return "accepted";
}

TEST(SparseOptions, AreTheDefaultsWithUseDenseFalse) {
  EXPECT_EQ(sparse_options(), parse_options(R"({"planConstraints": {"useDense": false}})", "text"));
}

TEST(ParseOptions, KeepsTheDefaultsOfAnEmptyObject) {
  EXPECT_EQ(parse_options("{}", "test"), Options{});
  EXPECT_EQ(Options{}.available_memory_proportion, 0.6);
  EXPECT_EQ(Options{}.meta_info_bucket_oversize_proportion, 0.3);
  EXPECT_FALSE(Options{}.shared_buckets.has_value());
}

TEST(ParseOptions, ReadsEveryKey) {
  const Options o = parse_options(
      R"({"availableMemoryProportion": 1, "metaInfoBucketOversizeProportion": 0.5,
          "bucketConfidence": 0.75, "patternCount": 12, "sharedBuckets": false, "enableStructuredRearrangements": false,
          "partitioner.optimiseForSpeed": true, "partitioner.forceBucketSpills": true,
          "partitioner.useActualWorkerSplitCosts": false, "searchLimit": 7,
          "planConstraints": {"partition": {"x": 6, "y": 4, "z": 2},
                              "exchange": {"gradWExchangeBuckets": true}, "useDense": true}})",
      "test");
  Options expected;
  expected.available_memory_proportion = 1;
  expected.meta_info_bucket_oversize_proportion = 0.5;
  expected.bucket_confidence = 0.75;
  expected.pattern_count = 12;
  expected.shared_buckets = false;
  expected.enable_structured_rearrangements = false;
  expected.partitioner_force_bucket_spills = true;
  expected.search_limit = 7;
  expected.constraints = {6, 4, 2, true, true};
  EXPECT_EQ(o, expected);
}

TEST(ParseOptions, RefusesTheSideOfAnOptionThatWouldChangeNothing) {
  EXPECT_EQ(parse_options(R"({"partitioner.optimiseForSpeed": "true",
                              "partitioner.useActualWorkerSplitCosts": "false"})",
                          "test"),
            Options{});
  EXPECT_THAT(
      message_of(R"({"partitioner.optimiseForSpeed": "false"})"),
      AllOf(HasSubstr("--matmul-options: partitioner.optimiseForSpeed is \"false\"; it must "
                      "be true or be left out: "),
            HasSubstr("fewest steps")));
  EXPECT_THAT(message_of(R"({"partitioner.useActualWorkerSplitCosts": true})"),
              AllOf(HasSubstr("partitioner.useActualWorkerSplitCosts is true; it must be false or "
                              "be left out: "),
                    HasSubstr("metaInfoBucketOversizeProportion")));
  EXPECT_THAT(message_of(R"({"partitioner.optimiseForSpeed": 1})"), HasSubstr("true or false"));
  EXPECT_THAT(message_of(R"({"enableStructuredRearrangements": false, "popLibsParity": true})"),
              HasSubstr("enableStructuredRearrangements is false; with popLibsParity it must"));
}

TEST(ParseOptions, AGivenSlackAloneDecidesUnlessAConfidenceIsGivenToo) {
  const auto confidence = [](const char* text) {
    return parse_options(text, "test").bucket_confidence;
  };
  EXPECT_EQ(confidence("{}"), Options{}.bucket_confidence);
  EXPECT_EQ(confidence(R"({"metaInfoBucketOversizeProportion": 0.3})"), 0.0);
  EXPECT_EQ(confidence(R"({"metaInfoBucketOversizeProportion": 0.3, "bucketConfidence": 0.5})"),
            0.5);
}

TEST(ParseOptions, TakesValuesWrittenAsText) {
  const Options o = parse_options(
      R"({"partitioner.forceBucketSpills": "true", "availableMemoryProportion": "0.25",
          "planConstraints": "{\"partition\":{\"x\":6}}"})",
      "test");
  EXPECT_TRUE(o.partitioner_force_bucket_spills);
  EXPECT_EQ(o.available_memory_proportion, 0.25);
  EXPECT_EQ(o.constraints.x, 6);
}

TEST(ParseOptions, LaysTextOverTheGivenOptions) {
  Options base;
  base.shared_buckets = false;
  EXPECT_EQ(parse_options(R"({"searchLimit": 9})", "test", base).shared_buckets, false);
}

TEST(ParseOptions, NamesWhatIsWrong) {
  EXPECT_THAT(
      message_of(R"({"sharedBucket": true})"),
      AllOf(HasSubstr("--matmul-options: sharedBucket is not known"), HasSubstr("sharedBuckets,")));
  EXPECT_THAT(message_of(R"({"sharedBuckets": 1})"),
              HasSubstr("sharedBuckets is 1; it must be true"));
  EXPECT_THAT(message_of(R"({"sharedBuckets": "yes"})"), HasSubstr("true or false"));
  EXPECT_THAT(message_of(R"({"availableMemoryProportion": 0})"),
              HasSubstr("availableMemoryProportion is 0; it must be in (0, 1]"));
  EXPECT_THAT(message_of(R"({"availableMemoryProportion": 1.01})"), HasSubstr("(0, 1]"));
  EXPECT_THAT(message_of(R"({"availableMemoryProportion": "0.5x"})"), HasSubstr("a number"));
  EXPECT_THAT(message_of(R"({"metaInfoBucketOversizeProportion": -0.1})"), HasSubstr("0..1000"));
  EXPECT_THAT(message_of(R"({"bucketConfidence": 1})"),
              HasSubstr("bucketConfidence is 1; it must be in [0, 1)"));
  EXPECT_THAT(message_of(R"({"patternCount": 0})"), HasSubstr("patternCount is 0; it must be"));
  EXPECT_THAT(message_of(R"({"searchLimit": 0})"), HasSubstr("1..2^62"));
  EXPECT_THAT(message_of(R"({"planConstraints": {"partition": {"x": -1}}})"),
              HasSubstr("planConstraints.partition.x is -1"));
  EXPECT_THAT(message_of(R"({"planConstraints": {"partition": {"g": 1}}})"),
              HasSubstr("planConstraints.partition.g is not known; the keys are x, y, z"));
  EXPECT_THAT(message_of(R"({"planConstraints": {"exchange": true}})"), HasSubstr("an object"));
  EXPECT_THAT(message_of(R"({"popLibsParity": {"freeSteps": true}})"),
              HasSubstr("popLibsParity is an object; it must be true or false"));
  EXPECT_THAT(message_of(R"({"doGradAPass": true})"), HasSubstr("part of the layer"));
  EXPECT_THAT(message_of(R"({"sharedBuckets")"), HasSubstr("not JSON"));
  EXPECT_THAT(message_of(R"({"sharedBuckets": true, "sharedBuckets": false})"),
              HasSubstr("key \"sharedBuckets\" is given twice"));
  EXPECT_THAT(message_of("[]"), HasSubstr("an object"));
}

// The ends of a range that belong to it, and the numbers beside the ends.
TEST(ParseOptions, TakesTheEndsOfEveryRangeAndNothingBeyond) {
  struct Range {
    const char* key;
    std::vector<const char*> legal, beyond;
  };
  for (const auto& [key, legal, beyond] :
       {Range{"availableMemoryProportion", {"1e-9", "1"}, {"0", "-0.5", "1.001", "2"}},
        {"metaInfoBucketOversizeProportion", {"0", "1000"}, {"-1e-9", "1000.5"}},
        {"bucketConfidence", {"0", "0.999"}, {"-0.001", "1"}},
        {"patternCount", {"1", "2147483647"}, {"0", "-1", "2147483648"}},
        {"searchLimit", {"1", "4611686018427387904"}, {"0", "-1", "4611686018427387905"}}}) {
    const auto text = [&](const char* value) {
      return "{\"" + std::string(key) + "\": " + value + "}";
    };
    for (const char* value : legal) EXPECT_EQ(message_of(text(value)), "accepted") << text(value);
    for (const char* value : beyond) EXPECT_THAT(message_of(text(value)), HasSubstr(key));
  }
}

TEST(ParsePlanConstraints, ReadsTheObjectAlone) {
  const PlanConstraints pins = parse_plan_constraints(R"({"partition":{"y":3}})", "test");
  EXPECT_EQ(pins, (PlanConstraints{{}, 3, {}, {}, {}}));
}

TEST(ParseOptions, ReadsTheOneSwitchForPopLibsPlans) {
  EXPECT_FALSE(Options{}.poplibs_parity);
  EXPECT_TRUE(parse_options(R"({"popLibsParity": "true"})", "test").poplibs_parity);
}

}  // namespace
}  // namespace tessera::planner
