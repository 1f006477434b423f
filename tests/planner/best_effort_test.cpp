#include <gmock/gmock.h>

#include <string>

#include "tessera/base/error.hpp"
#include "tessera/tests/planner/requests_without_plan.hpp"

// Plans in place of a request that has none, and requests that cannot be planned at all.
namespace tessera::planner {
namespace {

using testing::HasSubstr;

TEST(BestEffort, IsThePlanItselfWhenThereIsOne) {
  Request r;
  r.problem.size = {1, 256, 256, 64};
  const BestEffort effort = plan_best_effort(r.problem, r.machine);
  EXPECT_EQ(effort.result.status, PlanStatus::Found);
  EXPECT_EQ(effort.result.plan, plan(r.problem, r.machine).plan);
  EXPECT_FALSE(effort.relaxation);
  EXPECT_EQ(effort.problem, r.problem);
}

TEST(BestEffort, TakesTheCheaperOfItsTwoWaysAndNeverExceedsTheTile) {
  int memory = 0, parts = 0, both = 0, none = 0;
  for_requests_without_plan(150, [&](const Request& r) {
    const BestEffort effort = plan_best_effort(r.problem, r.machine, r.options);
    const NoFit n = explain_no_fit(r.problem, r.machine, r.options);
    const Relaxation* more = find(n, RelaxationKind::MoreMemory);
    const Relaxation* split = find(n, RelaxationKind::BatchInParts);
    if (!effort.relaxation) {
      ++none;
      EXPECT_EQ(effort.result.status, PlanStatus::NoPlan);
      EXPECT_TRUE(more == nullptr && split == nullptr);
      return;
    }
    EXPECT_EQ(effort.result.status, PlanStatus::BestEffort);
    EXPECT_THAT(effort.result.reason, HasSubstr(to_string(*effort.relaxation)));
    EXPECT_EQ(effort.result.plan, plan(effort.problem, r.machine, effort.options).plan);
    const PlanCost& cost = effort.result.plan.cost;
    EXPECT_LE(cost.temp + cost.resident, r.machine.tile_memory);
    const RelaxationKind kind = effort.relaxation->kind;
    memory += kind == RelaxationKind::MoreMemory;
    parts += kind == RelaxationKind::BatchInParts;
    both += kind == RelaxationKind::MemoryAndParts;
    if (kind == RelaxationKind::MemoryAndParts) {
      EXPECT_TRUE(more == nullptr && split == nullptr);
      EXPECT_EQ(effort.options.available_memory_proportion, 1);
    }
    for (const Relaxation* one : {more, split})
      if (one != nullptr) {
        EXPECT_LE(effort.relaxation->total_cycles, one->total_cycles);
      }
  });
  for (const int seen : {memory, parts, both, none}) EXPECT_GT(seen, 3);
}

std::string message_of(const Request& r, const PatternStats* stats = nullptr) {
  try {
    plan(r.problem, r.machine, r.options, stats);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
    return error.what();
  }
  return "accepted";
}

TEST(BadRequest, NamesWhatCannotBeAndTheLegalRange) {
  Request r;
  r.problem.size = {1, 64, 64, 48};
  r.options.poplibs_parity = true;
  r.options.constraints.use_dense = false;
  r.options.constraints.z = 5;  // of 12 grains
  EXPECT_THAT(message_of(r), HasSubstr("partition.z is 5"));
  EXPECT_THAT(message_of(r), HasSubstr("nearest legal values are 4 or 6"));
  r.options.constraints.z = 13;
  EXPECT_THAT(message_of(r), HasSubstr("nearest legal values are 12"));
  r.machine.tiles = 5;
  r.options.constraints.z = 5;
  EXPECT_THAT(message_of(r), testing::EndsWith("nearest legal values are 4"));

  r.options.constraints = {1 << 20, 1 << 20, 1 << 20, {}, {}};  // 2^80 tiles
  r.machine.tiles = 1 << 20;
  r.problem.size.g = 1 << 20;
  EXPECT_THAT(message_of(r), HasSubstr("planConstraints.partition needs"));

  Request huge;
  huge.problem.size = {1, 2147483647, 2147483647, 2147483647};
  EXPECT_THAT(message_of(huge), HasSubstr("at most 2^52"));

  Request counted;
  counted.problem.size = {1, 2, 3, 4};
  const PatternStats good{{1, 1}, {1, 3}, {1, 2, 1}}, negative{{1, 1}, {1, -1}, {1, 2, 1}},
      many{{1, 1}, {1, 3}, {1, 3, 1}};
  EXPECT_EQ(message_of(counted, &good), "accepted");
  EXPECT_THAT(message_of(counted, &negative), HasSubstr("row_counts[1] is -1; it must be in 0..3"));
  EXPECT_THAT(message_of(counted, &many), HasSubstr("col_counts[1] is 3; it must be in 0..2"));
}

}  // namespace
}  // namespace tessera::planner
