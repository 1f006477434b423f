#include "tessera/collectives/run_schedule.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tessera/base/dims.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/random.hpp"
#include "tessera/collectives/make_schedule.hpp"

namespace tessera::collectives {
namespace {

using Values = std::vector<std::vector<float>>;

Values random_values(std::int32_t members, std::int64_t size) {
  Random random(7);
  Values values(members, std::vector<float>(size));
  for (auto& own : values)
    for (float& value : own) value = float(random.unit() - 0.5);
  return values;
}

void run(const Schedule& schedule, Values& values) {
  const std::vector<std::span<float>> spans(values.begin(), values.end());
  run_schedule(schedule, spans);
}

std::vector<float> sum_in_order(const Values& values) {
  std::vector<float> sum(values[0].size());
  for (const auto& own : values)
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += own[i];
  return sum;
}

Range part_of(const Schedule& schedule, std::int64_t size, std::int32_t member) {
  const std::int32_t pieces = schedule.pieces_per_member;
  return {share_of(size, 1, schedule.pieces(), member * pieces).begin,
          share_of(size, 1, schedule.pieces(), member * pieces + pieces - 1).end};
}

TEST(RunSchedule, SumsHaveTheBitsOfTheMembersOrderByEveryAlgorithm) {
  for (const std::int32_t members : {1, 2, 3, 5, 8})
    for (const std::int64_t size : {0, 1, 7, 160})
      for (const Algorithm algorithm : algorithms_for(members)) {
        const Values given = random_values(members, size);
        const std::vector<float> sum = sum_in_order(given);
        Values all = given, parts = given;
        run(make_schedule(Operation::AllReduce, {members, algorithm}), all);
        for (const auto& result : all) EXPECT_EQ(result, sum) << to_string(algorithm);
        const Schedule scatter = make_schedule(Operation::ReduceScatter, {members, algorithm});
        run(scatter, parts);
        for (std::int32_t m = 0; m < members; ++m) {
          const Range part = part_of(scatter, size, m);
          for (std::int64_t i = part.begin; i < part.end; ++i) EXPECT_EQ(parts[m][i], sum[i]);
        }
      }
}

TEST(RunSchedule, GathersEveryPart) {
  const std::vector<LevelPart> levels = {{3, Algorithm::TwoWayRing}, {2, Algorithm::Direct}};
  const Schedule gather = make_schedule(Operation::AllGather, levels);
  const Values given = random_values(6, 50);
  Values gathered = given;
  run(gather, gathered);
  for (std::int32_t m = 0; m < 6; ++m)
    for (std::int32_t owner = 0; owner < 6; ++owner) {
      const Range part = part_of(gather, 50, owner);
      for (std::int64_t i = part.begin; i < part.end; ++i)
        EXPECT_EQ(gathered[m][i], given[owner][i]);
    }
}

// The values move as the schedule says: without its last step, something is missing.
TEST(RunSchedule, FollowsTheSchedule) {
  Schedule shorter = make_schedule(Operation::AllReduce, {4, Algorithm::OneWayRing});
  shorter.steps.erase(shorter.steps.begin());
  Values values = random_values(4, 40);
  const std::vector<float> sum = sum_in_order(values);
  run(shorter, values);
  EXPECT_NE(values[0], sum);
}

TEST(RunSchedule, RefusesDataOfOtherMembersOrSizes) {
  const Schedule gather = make_schedule(Operation::AllGather, {2, Algorithm::Direct});
  Values three = random_values(3, 4), uneven = random_values(2, 4);
  uneven[1].pop_back();
  EXPECT_THROW(run(gather, three), Error);
  EXPECT_THROW(run(gather, uneven), Error);
}

}  // namespace
}  // namespace tessera::collectives
