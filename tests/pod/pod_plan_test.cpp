#include "tessera/pod/pod_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tessera/base/error.hpp"
#include "tessera/pod/explain_pod.hpp"
#include "tessera/tests/pod/pod_case.hpp"

namespace tessera::pod {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

PodPlan example() {
  const Problem problem = make_problem({1, 40, 36, 13}, {4, 4}, 0.3, DataType::Half);
  return plan_of_grid(problem, small_pod(small_machine(5), 2, 6),
                      {{{{1, 1, 2, 1}}, {{1, 2, 1, 3}, {Axis::Z, Axis::X, Axis::Y}}}}, 2);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(PodGrid, PlacesEveryPartOnceAndNeighboursNextToEachOther) {
  const PodPlan plan = example();
  const std::vector<DevicePlace> places = places_of(plan.grid, plan.pod);
  ASSERT_EQ(places.size(), 12U);
  std::set<std::int64_t> devices, parts;
  for (const DevicePlace& place : places) {
    devices.insert(place.device);
    parts.insert((place.at.x * 2 + place.at.y) * 3 + place.at.z);
  }
  EXPECT_EQ(devices.size(), 12U);
  EXPECT_EQ(parts.size(), 12U);
  EXPECT_EQ(*parts.rbegin(), 11);
  EXPECT_EQ(places[1].at, (Dims{0, 0, 1, 0}));  // the pair has y
  EXPECT_EQ(places[2].at, (Dims{0, 0, 0, 1}));  // the next pair has the next z
  EXPECT_EQ(places[6].at, (Dims{0, 1, 0, 0}));  // after three of them, the next x
}

TEST(PodGrid, RefusesMoreThanThePodHas) {
  const device::Pod pod = small_pod(small_machine(5), 2, 3);
  EXPECT_THAT([&] { places_of({{{{1, 3, 1, 1}}, {}}}, pod); },
              ThrowsMessage<Error>(HasSubstr("level 0")));
  EXPECT_THAT([&] { places_of({{{{1, 1, 1, 1}}}}, pod); },
              ThrowsMessage<Error>(HasSubstr("1 levels and its pod 2")));
  EXPECT_THROW(places_of({{{}, {{1, 1, 1, 1}, {Axis::X, Axis::X, Axis::Z}}}}, pod), Error);
  constexpr std::int64_t kMany = std::int64_t{1} << 32;  // whose square is beyond 64 bits
  for (const Dims& parts : {Dims{1, 0, 1, 1}, Dims{1, -1, -1, 1}, Dims{kMany, kMany, 1, 1}})
    EXPECT_THAT([&] { places_of({{{}, {parts}}}, pod); },
                ThrowsMessage<Error>(HasSubstr("level 1")));
}

TEST(PodPlan, HasAShapeForEverySizeAndCountsItsDevices) {
  const PodPlan plan = example();
  std::int64_t devices = 0;
  for (const DeviceShape& shape : plan.shapes) devices += shape.devices;
  EXPECT_EQ(devices, 12);
  for (const DevicePlace& place : places_of(plan.grid, plan.pod))
    EXPECT_EQ(shape_at(plan, place.at).size, size_at(plan, place.at));
  EXPECT_EQ(plan.shapes.front().size, (Dims{1, 20, 20, 3}));  // 13 columns in 3 parts of 2 x 3
}

TEST(PodPlan, LoadsBackUnchangedFromJson) {
  const PodPlan plan = example();
  EXPECT_EQ(pod_plan_from_json(pod_plan_to_json(plan), "plan.json"), plan);
  Problem large = plan.problem;
  large.size.z = 12;
  const PodPlan planned = plan_pod_or_throw(large, plan.pod);
  EXPECT_EQ(pod_plan_from_json(pod_plan_to_json(planned), "plan.json"), planned);
}

TEST(PodPlan, RefusesJsonThatIsNoPlan) {
  const std::string good = pod_plan_to_json(example());
  const auto refuses = [&](const std::string& from, const std::string& to, const char* why) {
    EXPECT_THAT([&] { pod_plan_from_json(replaced(good, from, to), "plan.json"); },
                ThrowsMessage<Error>(HasSubstr(why)))
        << from;
  };
  refuses("\"schema_version\": 2", "\"schema_version\": 1", "schema_version");
  refuses("\"serial_parts\": 2", "\"serial_parts\": 20", "serial parts leaves a share");
  refuses("\"serial_parts\": 2", "\"serial_parts\": 1", "z is");
  refuses("\"order\": \"zxy\"", "\"order\": \"zxx\"", "grid[1].order");
  refuses("\"order\": \"zxy\"", "\"order\": \"xzy\"", "cost is not that");
  refuses("\"density\": 0.3", "\"density\": 3", "density");
  refuses("\"kind\": \"ring\"", "\"kind\": \"line\"", "kind");
  refuses("\"buffer_bytes\"", "\"buffer\"", "cost is not that");
  refuses("\"grid\"", "\"gird\"", "grid is missing");
  for (std::size_t end = 0; end < good.size(); end += good.size() / 40)
    EXPECT_THROW(pod_plan_from_json(good.substr(0, end), "plan.json"), Error) << end;
}

TEST(PodPlan, SaysInTextWhatItDoes) {
  const std::string text = to_string(example());
  EXPECT_THAT(text, HasSubstr("g1 x2 y2 z3, 2 x 6 devices of 12"));
  EXPECT_THAT(text, HasSubstr("2 serial parts"));
  EXPECT_THAT(text, HasSubstr("of dR along z"));
}

TEST(ExplainPod, ShowsEveryKindOfGridAndTheCheapestAlgorithmAsChosen) {
  const Problem problem = make_problem({2, 64, 64, 64}, {4, 4}, 0.3, DataType::Half);
  const PodPlan plan = plan_pod_or_throw(problem, small_pod(small_machine(8), 2, 3));
  const PodExplanation explanation = explain_pod(plan);
  EXPECT_EQ(explanation.grids.size(), 7U);
  for (const GridAlternative& alternative : explanation.grids)
    if (alternative.plan) {
      EXPECT_GE(alternative.plan->seconds(), plan.seconds()) << alternative.kind;
    }
  for (const AlgorithmPrice& price : explanation.algorithms)
    for (const AlgorithmPrice& other : explanation.algorithms)
      if (price.chosen && other.pass == price.pass && other.level == price.level &&
          other.collective == price.collective) {
        EXPECT_LE(price.seconds, other.seconds);
      }
  EXPECT_THAT(to_text(explanation), HasSubstr("data parallel"));
  EXPECT_THAT(to_json(explanation), HasSubstr("\"kind\":\"one device\""));
}

}  // namespace
}  // namespace tessera::pod
