#include "tessera/runtime/propagation.hpp"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "tessera/base/random.hpp"

namespace tessera::runtime {
namespace {

using Place = std::tuple<std::int64_t, std::int64_t, std::int64_t>;

Place place(const Displacement& d) { return {d.x, d.y, d.z}; }

std::vector<PropagationStep> steps_of(const partitioner::Travel& travel, Dims splits,
                                      Served served) {
  std::vector<PropagationStep> steps;
  propagation_steps(travel, splits, served, steps);
  return steps;
}

// Returns the places that must be visited, found without walking.
std::set<Place> needed(const partitioner::Travel& travel, const Dims& splits, Served served) {
  std::set<Place> places;
  const std::int64_t z_count = served == Served::NoZ ? 1 : splits.z;
  for (std::int64_t x = 0; x < travel.x_end(); ++x)
    for (std::int64_t y = 0; y < travel.y_end[std::size_t(x)]; ++y)
      for (std::int64_t z = 0; z < z_count; ++z) places.insert({x, y, z});
  for (std::int64_t z = 0; z < (served == Served::OwnZ ? 1 : z_count); ++z) places.erase({0, 0, z});
  return places;
}

// Each step is one shift of +1 along its axis from the step before, and ends in a visit.
void expect_legal_walk(const std::vector<PropagationStep>& steps, const Dims& splits) {
  for (std::size_t i = 1; i < steps.size(); ++i) {
    Displacement want = steps[i - 1].after;
    if (steps[i].shift == Axis::X) want.x = (want.x + 1) % splits.x;
    if (steps[i].shift == Axis::Y) want.y = (want.y + 1) % splits.y;
    if (steps[i].shift == Axis::Z) want.z = (want.z + 1) % splits.z;
    EXPECT_EQ(steps[i].after, want) << "step " << i;
  }
  if (!steps.empty()) {
    EXPECT_TRUE(steps.front().compute && steps.back().compute);
  }
}

void expect_visits_once(const partitioner::Travel& travel, const Dims& splits, Served served) {
  const auto steps = steps_of(travel, splits, served);
  expect_legal_walk(steps, splits);
  std::multiset<Place> visited;
  for (const PropagationStep& step : steps)
    if (step.compute) visited.insert(place(step.after));
  const std::set<Place> want = needed(travel, splits, served);
  EXPECT_EQ(visited, std::multiset<Place>(want.begin(), want.end()));
}

TEST(Propagation, HasNothingToDoWhenNothingSpilled) {
  EXPECT_TRUE(steps_of({}, {1, 4, 5, 6}, Served::AllOfZ).empty());
  EXPECT_TRUE(steps_of({}, {1, 4, 5, 6}, Served::NoZ).empty());
}

TEST(Propagation, BucketsOfGradWTurnOnceThroughZEvenWithoutSpills) {
  const auto steps = steps_of({}, {1, 2, 2, 3}, Served::OwnZ);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(place(steps[0].after), Place(0, 0, 1));
  EXPECT_EQ(place(steps[1].after), Place(0, 0, 2));
}

TEST(Propagation, StartsAtTheFirstPlaceNeededWhereverItIs) {
  partitioner::Travel travel;
  travel.y_end = {1, 0, 2};
  const auto steps = steps_of(travel, {1, 3, 4, 1}, Served::AllOfZ);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(place(steps[0].after), Place(2, 0, 0));
  EXPECT_EQ(place(steps[1].after), Place(2, 1, 0));
}

TEST(Propagation, VisitsEveryPlaceNeededOnceByShiftsOfOne) {
  Random random(11);
  for (int round = 0; round < 400; ++round) {
    const Dims splits{1, 1 + random.below(5), 1 + random.below(5), 1 + random.below(4)};
    partitioner::Travel travel;
    travel.y_end.assign(std::size_t(1 + random.below(splits.x)), 0);
    for (auto& y : travel.y_end) y = static_cast<std::int32_t>(random.below(splits.y + 1));
    SCOPED_TRACE(testing::Message() << "round " << round << ", splits " << to_string(splits));
    for (const Served served : {Served::AllOfZ, Served::OwnZ, Served::NoZ})
      expect_visits_once(travel, splits, served);
  }
}

// A turn along y may begin anywhere, so the next x distance begins where the last one ended.
TEST(Propagation, GoesOnAtTheYWhereTheLastXDistanceEnded) {
  partitioner::Travel travel;
  travel.y_end = {4, 4, 4};
  const auto steps = steps_of(travel, {1, 3, 4, 1}, Served::AllOfZ);
  EXPECT_EQ(steps.size(), 11u);  // every place but home by one shift each
  for (const PropagationStep& step : steps) EXPECT_TRUE(step.compute);
}

TEST(Propagation, ReturnsHomeFromAnywhere) {
  const Dims splits{1, 3, 4, 2};
  for (std::int64_t x = 0; x < 3; ++x)
    for (std::int64_t y = 0; y < 4; ++y)
      for (std::int64_t z = 0; z < 2; ++z) {
        std::vector<PropagationStep> steps;
        return_home({x, y, z}, splits, steps);
        EXPECT_EQ(steps.size(), std::size_t((3 - x) % 3 + (4 - y) % 4 + (2 - z) % 2));
        if (!steps.empty()) {
          EXPECT_EQ(place(steps.back().after), Place(0, 0, 0));
        }
      }
}

}  // namespace
}  // namespace tessera::runtime
