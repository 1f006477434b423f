#include "tessera/pod/plan_pod.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/planner/plan_bounds.hpp"
#include "tessera/pod/internal/pass_steps.hpp"
#include "tessera/tests/pod/all_grids.hpp"
#include "tessera/tests/pod/pod_case.hpp"

namespace tessera::pod {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(PlanPod, IsTheFastestOfAllGrids) {
  std::int64_t cut = 0, serial = 0, partial = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const Drawn drawn = draw(seed);
    const PodResult result = plan_pod(drawn.problem, drawn.pod);
    const double least = least_seconds(drawn);
    if (!result.plan) {
      EXPECT_EQ(least, std::numeric_limits<double>::infinity()) << seed;
      continue;
    }
    EXPECT_NEAR(result.plan->seconds() / least, 1, 1e-9) << "seed " << seed << "\n"
                                                         << to_string(*result.plan);
    const Dims parts = result.plan->grid.parts();
    cut += (parts.x > 1 || parts.y > 1) && parts.z > 1;
    serial += result.plan->serial_parts > 1;
    partial += parts.product() > 1 && parts.product() < drawn.pod.devices();
  }
  EXPECT_GT(cut, 0);
  EXPECT_GT(serial, 0);
  EXPECT_GT(partial, 0);
}

// The search decides by floors; each of them must be one.
TEST(PlanFloor, IsNoMoreThanThePlan) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const Drawn drawn = draw(seed);
    const auto found = planner::plan(drawn.problem, drawn.pod.machine);
    std::int64_t last = 0;
    for (const std::int64_t boxes : {1, 8, 400}) {
      const auto floor = planner::plan_floor(drawn.problem, drawn.pod.machine, {}, boxes);
      if (!floor.possible) {
        EXPECT_FALSE(found.has_plan) << seed;
        continue;
      }
      if (found.has_plan) {
        EXPECT_LE(floor.cycles, found.plan.cost.cycles) << seed;
      }
      EXPECT_GE(floor.cycles.value, last) << seed;
      last = floor.cycles.value;
    }
  }
}

TEST(PlanBelow, FindsThePlanWithFewerCyclesThanTheLimitAndNoOther) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Drawn drawn = draw(seed);
    const auto found = planner::plan(drawn.problem, drawn.pod.machine);
    if (!found.has_plan) continue;
    const Cycles cycles = found.plan.cost.cycles;
    const auto above = planner::plan_below(drawn.problem, drawn.pod.machine, cycles + Cycles(1));
    ASSERT_TRUE(above.has_plan) << seed;
    EXPECT_EQ(above.plan.cost.cycles, cycles) << seed;
    EXPECT_FALSE(planner::plan_below(drawn.problem, drawn.pod.machine, cycles).has_plan) << seed;
  }
}

// The price of a plan's collectives comes from prices of single levels. Routing every message of
// all groups through the whole pod gives the same.
TEST(PlanPod, PricesCollectivesAsTheirRoutedSchedules) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const Drawn drawn = draw(seed);
    const PodResult result = plan_pod(drawn.problem, drawn.pod);
    if (!result.plan) continue;
    const PodPlan& plan = *result.plan;
    const std::vector<DevicePlace> places = places_of(plan.grid, plan.pod);
    for (const PodPass& pass : plan.passes)
      for (const PlannedCollective& c : pass.collectives) {
        std::vector<collectives::Group> groups;
        for (const internal::Members& members : internal::groups_along(plan.grid, places, c.axis)) {
          collectives::Group& group = groups.emplace_back();
          for (const std::size_t d : members) group.push_back(places[d].device);
        }
        const auto schedule = collectives::make_schedule(c.operation, c.levels);
        const double bytes = double(c.elements * bytes_of(plan.problem.data_type));
        const auto cost =
            collectives::schedule_cost(schedule, groups, plan.pod, bytes / schedule.pieces());
        EXPECT_NEAR(c.seconds / cost.seconds, 1, 1e-9) << seed;
        ASSERT_EQ(c.level_bytes.size(), cost.level_bytes.size());
        for (std::size_t l = 0; l < cost.level_bytes.size(); ++l)
          EXPECT_NEAR(c.level_bytes[l], cost.level_bytes[l], 1e-6 * bytes) << seed;
      }
  }
}

TEST(PlanPod, UsesAPartOfThePodWhereThatIsFaster) {
  // Three columns and one row of blocks: three devices can have one column each.
  const Problem problem = make_problem({1, 16, 512, 3}, {16, 16}, 0.5, DataType::Half, false);
  device::Pod pod = small_pod(small_machine(4), 2, 2);
  for (device::PodLevel& level : pod.levels) level.bytes_per_second = 1;  // any sum is too dear
  const PodPlan plan = plan_pod_or_throw(problem, pod);
  EXPECT_LE(plan.grid.devices(), 3);
  EXPECT_EQ(plan.grid.parts().y, 1);
}

TEST(PlanPod, ObeysPinsAndRefusesThoseThatNoPodHas) {
  const Problem problem = make_problem({1, 64, 64, 32}, {1, 1}, 0.2, DataType::Half);
  const device::Pod pod = small_pod(small_machine(8), 2, 3);
  GridPins pins;
  pins.x = 3;
  pins.z = 2;
  const PodPlan plan = plan_pod_or_throw(problem, pod, {}, pins);
  EXPECT_EQ(plan.grid.parts().x, 3);
  EXPECT_EQ(plan.grid.parts().z, 2);
  pins.z = 7;
  EXPECT_THAT([&] { plan_pod(problem, pod, {}, pins); },
              ThrowsMessage<Error>(HasSubstr("count of z is 7; it must be in 1..6")));
  pins.z = 5;  // with x 3 more than the pod has
  const PodResult none = plan_pod(problem, pod, {}, pins);
  EXPECT_FALSE(none.plan.has_value());
  EXPECT_THAT(none.reason, HasSubstr("pin fewer"));
}

// One part of the batch fits only without buckets, which takes ten times as long as four parts with
// them.
TEST(PlanPod, LooksAtSerialPartsWhereOnePartFitsWithoutBucketsOnly) {
  const Problem problem = make_problem({1, 32768, 32768, 1024}, {16, 16}, 1.0 / 64, DataType::Half);
  const device::Pod pod = device::pod_preset("bow-pod4");
  GridPins data_parallel;
  data_parallel.g = data_parallel.x = data_parallel.y = 1;
  const PodPlan best = plan_pod_or_throw(problem, pod);
  const PodPlan other = plan_pod_or_throw(problem, pod, {}, data_parallel);
  EXPECT_GT(other.serial_parts, 1);
  EXPECT_LE(best.seconds(), other.seconds());
}

// The table bench/results/pods.tsv is modelled, so it is the same everywhere.
TEST(PlanPod, HasTheTimesOfTheResultsTable) {
  Problem problem = make_problem({1, 8192, 8192, 4096}, {16, 16}, 1.0 / 16, DataType::Half);
  const std::string table = read_file(TESSERA_SOURCE_DIR "/bench/results/pods.tsv");
  const device::Machine bow = device::machine_preset("bow");
  for (const std::int64_t devices : {4, 16}) {
    const PodPlan plan = plan_pod_or_throw(problem, device::pod_of(bow, devices));
    EXPECT_THAT(table,
                HasSubstr("\nA\t" + std::to_string(devices) + "\t" + to_string(plan.grid.parts()) +
                          "\t" + std::to_string(plan.serial_parts) + "\t" +
                          std::to_string(std::llround(plan.seconds() * 1e6)) + "\t"));
  }
}

TEST(PlanPod, SaysWhenNoGridFits) {
  const Problem problem = make_problem({1, 4096, 4096, 1}, {1, 1}, 0.5, DataType::Half);
  const PodResult none = plan_pod(problem, small_pod(small_machine(4, 20000), 2, 2));
  EXPECT_FALSE(none.plan.has_value());
  EXPECT_THAT(none.reason, HasSubstr("4 devices"));
}

}  // namespace
}  // namespace tessera::pod
