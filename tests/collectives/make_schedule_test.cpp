#include "tessera/collectives/make_schedule.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/tests/collectives/check_schedule.hpp"

namespace tessera::collectives {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr Operation kOperations[] = {Operation::AllGather, Operation::ReduceScatter,
                                     Operation::AllReduce};

TEST(MakeSchedule, EveryAlgorithmDoesWhatItsOperationPromises) {
  for (std::int32_t members = 1; members <= 17; ++members)
    for (const Algorithm algorithm : algorithms_for(members))
      for (const Operation operation : kOperations)
        EXPECT_EQ(check_schedule(make_schedule(operation, {members, algorithm})), "")
            << to_string(operation) << " " << to_string(algorithm) << " " << members;
}

TEST(MakeSchedule, LevelsOfAnySizesAndAlgorithmsCombine) {
  using enum Algorithm;
  const std::vector<std::vector<LevelPart>> cases = {
      {{2, Direct}, {3, TwoWayRing}},
      {{3, MeetInTheMiddle}, {5, OneWayRing}},
      {{2, Halving}, {2, OneWayRing}, {3, TwoWayRing}},
      {{5, TwoWayRing}, {1, Direct}, {2, Direct}},
      {{4, Halving}, {7, MeetInTheMiddle}},
      {{6, MeetByHalves}, {4, MeetByHalves}},
      {}};
  for (const std::vector<LevelPart>& levels : cases)
    for (const Operation operation : kOperations)
      EXPECT_EQ(check_schedule(make_schedule(operation, levels)), "")
          << to_string(operation) << " over " << levels.size() << " levels";
}

TEST(MakeSchedule, EveryPairOfAlgorithmsWorksOnLevelsOfOddSizes) {
  for (const std::int32_t inner : {1, 2, 3, 5})
    for (const std::int32_t outer : {1, 3, 4})
      for (const Algorithm low : algorithms_for(inner))
        for (const Algorithm high : algorithms_for(outer))
          for (const Operation operation : kOperations) {
            const std::vector<LevelPart> levels = {{inner, low}, {outer, high}};
            EXPECT_EQ(check_schedule(make_schedule(operation, levels)), "")
                << to_string(operation) << " " << inner << " " << to_string(low) << " " << outer
                << " " << to_string(high);
          }
}

TEST(MakeSchedule, TakesTheStepsOfItsAlgorithm) {
  const auto steps = [](std::int32_t members, Algorithm algorithm) {
    return make_schedule(Operation::AllGather, {members, algorithm}).steps.size();
  };
  EXPECT_EQ(steps(8, Algorithm::OneWayRing), 7U);
  EXPECT_EQ(steps(8, Algorithm::TwoWayRing), 7U);
  EXPECT_EQ(steps(8, Algorithm::MeetInTheMiddle), 4U);
  EXPECT_EQ(steps(7, Algorithm::MeetInTheMiddle), 3U);
  EXPECT_EQ(steps(8, Algorithm::MeetByHalves), 4U);
  EXPECT_EQ(steps(8, Algorithm::Direct), 1U);
  EXPECT_EQ(steps(8, Algorithm::Halving), 3U);
  EXPECT_EQ(steps(1, Algorithm::Direct), 0U);
}

TEST(MakeSchedule, OuterLevelsGatherFirstAndSumLast) {
  const std::vector<LevelPart> levels = {{2, Algorithm::Direct}, {3, Algorithm::Direct}};
  const Schedule gather = make_schedule(Operation::AllGather, levels);
  EXPECT_EQ(gather.steps[0][0], (Transfer{0, 2, 0, 1, false}));  // a neighbour on the outer level
  EXPECT_EQ(gather.steps[1].size(), 3U * 2 * 3);  // three parts to the neighbour on the inner one
  const Schedule sum = make_schedule(Operation::ReduceScatter, levels);
  EXPECT_EQ(sum.steps[0].size(), 3U * 2 * 3);
  EXPECT_TRUE(sum.steps[0][0].add);
}

TEST(MakeSchedule, RefusesWhatTheMembersCannotUse) {
  EXPECT_THAT([] { make_schedule(Operation::AllGather, {6, Algorithm::Halving}); },
              ThrowsMessage<Error>(HasSubstr("6 members")));
  EXPECT_THROW(make_schedule(Operation::AllGather, {2, Algorithm::TwoWayRing}), Error);
  EXPECT_THROW(make_schedule(Operation::AllGather, {7, Algorithm::MeetByHalves}), Error);
  EXPECT_THROW(make_schedule(Operation::AllGather, {0, Algorithm::Direct}), Error);
  EXPECT_THROW(make_schedule(Operation::AllGather, {(1 << 15) + 1, Algorithm::OneWayRing}), Error);
}

// The checker itself has to see every kind of fault.
TEST(CheckSchedule, NamesTheFaultOfAWrongSchedule) {
  const Schedule gather = make_schedule(Operation::AllGather, {4, Algorithm::OneWayRing});
  Schedule shorter = gather;
  shorter.steps.pop_back();
  EXPECT_THAT(check_schedule(shorter), HasSubstr("lacks a contribution"));
  Schedule early = gather;
  std::swap(early.steps[0], early.steps[2]);
  EXPECT_THAT(check_schedule(early), HasSubstr("which it does not have"));
  Schedule outside = gather;
  outside.steps[1][2].pieces = 4;
  EXPECT_THAT(check_schedule(outside), HasSubstr("illegal"));
  Schedule sum = make_schedule(Operation::AllReduce, {4, Algorithm::Direct});
  sum.steps.insert(sum.steps.begin(), sum.steps[0]);
  EXPECT_THAT(check_schedule(sum), HasSubstr("twice"));
  Schedule replaced = make_schedule(Operation::ReduceScatter, {3, Algorithm::OneWayRing});
  replaced.steps[1][0].add = false;
  EXPECT_THAT(check_schedule(replaced), HasSubstr("lacks a contribution"));
}

}  // namespace
}  // namespace tessera::collectives
