#include "tessera/collectives/schedule_cost.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/collectives/make_schedule.hpp"

namespace tessera::collectives {
namespace {

using device::LevelKind;
using device::Pod;
using device::PodLevel;

constexpr double kStep = 2.4e-6, kRate = 29.2e9;

Pod ring_of(std::int64_t devices) {
  Pod pod;
  pod.levels = {{LevelKind::Ring, devices, kRate, kStep, 0}};
  return pod;
}

// The price of an operation over all devices of one level.
double price(Operation operation, Algorithm algorithm, const Pod& pod, double bytes) {
  const std::int32_t n = std::int32_t(pod.devices());
  const Schedule schedule = make_schedule(operation, {n, algorithm});
  const std::vector<Group> groups = groups_of({0, n, 1, n});
  return schedule_cost(schedule, groups, pod, bytes / schedule.pieces()).seconds;
}

TEST(ScheduleCost, OfRingsIsTheirFormula) {
  const double bytes = 1e6;
  for (const int n : {3, 4, 8, 15, 16}) {
    const Pod pod = ring_of(n);
    const auto gather = [&](Algorithm a) { return price(Operation::AllGather, a, pod, bytes); };
    const double part = bytes / n / kRate;
    EXPECT_NEAR(gather(Algorithm::OneWayRing), (n - 1) * (kStep + part), 1e-12);
    EXPECT_NEAR(gather(Algorithm::TwoWayRing), (n - 1) * (kStep + part / 2), 1e-12);
    EXPECT_NEAR(gather(Algorithm::MeetInTheMiddle), n / 2 * (kStep + part), 1e-12);
    if (n % 2 == 0) {
      EXPECT_NEAR(gather(Algorithm::MeetByHalves), n / 2 * kStep + (n - 1) * part / 2, 1e-12);
    }
  }
}

// Far partners of a gather exchange one part, near ones half of all data. On a ring of 8 the links
// carry 4 / 2 parts to the opposite member, which go both ways, and then 2 * 2 and 4 * 1.
TEST(ScheduleCost, OfHalvingSendsTheLargestMessagesTheShortestWay) {
  const double part = 1e6 / 8 / kRate;
  EXPECT_NEAR(price(Operation::AllGather, Algorithm::Halving, ring_of(8), 1e6),
              3 * kStep + (2 + 4 + 4) * part, 1e-12);
}

TEST(ScheduleCost, OfASumIsThatOfItsGatherAndAnAllReduceIsBoth) {
  for (const LevelKind kind : {LevelKind::Ring, LevelKind::Full, LevelKind::Switch})
    for (const int n : {2, 5, 8}) {
      Pod pod = ring_of(n);
      pod.levels[0].kind = kind;
      for (const Algorithm a : algorithms_for(n)) {
        const double gather = price(Operation::AllGather, a, pod, 1e6);
        EXPECT_NEAR(price(Operation::ReduceScatter, a, pod, 1e6), gather, 1e-12);
        EXPECT_NEAR(price(Operation::AllReduce, a, pod, 1e6), 2 * gather, 1e-12);
      }
    }
}

TEST(ScheduleCost, OfDirectMessagesFollowsTheLinks) {
  // Full: every pair has a link of a seventh of the rate. Switch: seven parts leave each device.
  Pod full = ring_of(8), joined = full;
  full.levels[0].kind = LevelKind::Full;
  joined.levels[0].kind = LevelKind::Switch;
  const double all = kStep + 7.0 / 8 * 1e6 / kRate;
  EXPECT_NEAR(price(Operation::AllGather, Algorithm::Direct, full, 1e6), all, 1e-12);
  EXPECT_NEAR(price(Operation::AllGather, Algorithm::Direct, joined, 1e6), all, 1e-12);
  // Ring: hops of 1, 2, 3 on each side and half of those over 4: 1 + 2 + 3 + 2 parts a link.
  EXPECT_NEAR(price(Operation::AllGather, Algorithm::Direct, ring_of(8), 1e6),
              kStep + 8.0 / 8 * 1e6 / kRate, 1e-12);
}

// The vendor's collectives changed from one algorithm to the other at these sizes, which it had
// found by experiment; one latency of a step explains all three.
TEST(ScheduleCost, RingsOvertakeMeetingInTheMiddleWhereTheVendorFoundIt) {
  struct Found {
    int devices;
    double kib;
  };
  for (const Found& found : {Found{4, 608}, Found{8, 2432}, Found{16, 19456}}) {
    const auto difference = [&](double bytes) {
      const Pod pod = ring_of(found.devices);
      return price(Operation::AllGather, Algorithm::TwoWayRing, pod, bytes) -
             price(Operation::AllGather, Algorithm::MeetInTheMiddle, pod, bytes);
    };
    const double at_0 = difference(0), slope = (difference(1e6) - at_0) / 1e6;
    const double ratio = -at_0 / slope / (found.kib * 1024);
    EXPECT_LT(std::max(ratio, 1 / ratio), 1.6) << found.devices;
  }
}

TEST(ScheduleCost, CountsBytesByLevel) {
  Pod pod = ring_of(3);
  pod.levels.push_back({LevelKind::Switch, 2, 1e9, 1e-5, 0});
  const std::vector<LevelPart> levels = {{3, Algorithm::OneWayRing}, {2, Algorithm::Direct}};
  const std::vector<Group> all = {{0, 1, 2, 3, 4, 5}};
  const ScheduleCost cost =
      schedule_cost(make_schedule(Operation::AllGather, levels), all, pod, 10);
  // Outer: every device sends its piece once. Inner: two pieces of each device go two hops.
  EXPECT_EQ(cost.level_bytes, (std::vector<double>{6 * 2 * 2 * 10.0, 6 * 10.0}));
  EXPECT_NEAR(cost.seconds, 1e-5 + 10 / 1e9 + 2 * (kStep + 20 / kRate), 1e-15);
}

// A collective along a part of each level, in every group at the same time, routed through the
// whole pod, costs what its levels cost one by one.
TEST(LevelCosts, AddUpToTheRoutedScheduleOfThePod) {
  const Pod pod{
      "", {}, {{LevelKind::Full, 4, 5e10, 1e-6, 0}, {LevelKind::Ring, 12, kRate, kStep, 0}}};
  struct Cut {
    LevelPlace inner, outer;
  };
  for (const Cut& cut : {Cut{{0, 2, 1, 4}, {1, 3, 1, 12}}, Cut{{0, 2, 2, 4}, {1, 3, 4, 12}},
                         Cut{{0, 4, 1, 4}, {1, 5, 2, 10}}, Cut{{0, 3, 1, 3}, {1, 4, 2, 8}}}) {
    const std::int32_t members = cut.inner.members * cut.outer.members;
    const auto inner_costs = level_costs(pod.levels[0], cut.inner);
    const auto outer_costs = level_costs(pod.levels[1], cut.outer);
    for (const LevelCost& inner : inner_costs)
      for (const LevelCost& outer : outer_costs) {
        std::vector<Group> groups;
        for (const Group& high : groups_of(cut.outer))
          for (const Group& low : groups_of(cut.inner)) {
            Group& group = groups.emplace_back();
            for (const std::int64_t h : high)
              for (const std::int64_t l : low) group.push_back(h * 4 + l);
          }
        const std::vector<LevelPart> levels = {{cut.inner.members, inner.algorithm},
                                               {cut.outer.members, outer.algorithm}};
        const Schedule gather = make_schedule(Operation::AllGather, levels);
        const double routed = schedule_cost(gather, groups, pod, 1e6 / gather.pieces()).seconds;
        const double outer_part = 1e6 / members;
        const double inner_part = outer_part * cut.outer.members;
        EXPECT_NEAR(
            routed,
            inner.seconds(pod.levels[0], inner_part) + outer.seconds(pod.levels[1], outer_part),
            1e-12);
      }
  }
}

// A sum receives what its gather sends, so that much memory has to be free besides the data.
TEST(LevelCosts, SayWhatAMemberOfASumReceivesInOneStep) {
  const Pod pod = ring_of(8);
  for (const LevelCost& cost : level_costs(pod.levels[0], {0, 8, 1, 8})) {
    const auto parts = [&]() -> double {
      switch (cost.algorithm) {
        case Algorithm::OneWayRing:
        case Algorithm::TwoWayRing:  // half a part from each side
          return 1;
        case Algorithm::MeetInTheMiddle:
        case Algorithm::MeetByHalves:
          return 2;
        case Algorithm::Halving:  // the last step of the gather sends half of the data
          return 4;
        case Algorithm::Direct:
          break;
      }
      return 7;
    };
    EXPECT_EQ(cost.held, parts()) << to_string(cost.algorithm);
  }
}

TEST(ScheduleCost, RefusesGroupsThatAreNotOfThePod) {
  const Schedule gather = make_schedule(Operation::AllGather, {2, Algorithm::Direct});
  const std::vector<Group> outside = {{0, 4}}, few = {{0}};
  EXPECT_THROW(schedule_cost(gather, outside, ring_of(4), 1), Error);
  EXPECT_THROW(schedule_cost(gather, few, ring_of(4), 1), Error);
}

}  // namespace
}  // namespace tessera::collectives
