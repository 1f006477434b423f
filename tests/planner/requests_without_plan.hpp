#pragma once

#include <gtest/gtest.h>

#include "tessera/base/random.hpp"
#include "tessera/planner/no_fit.hpp"

// Requests without a plan, small enough for every figure of a failure to be enumerated.
namespace tessera::planner {

inline constexpr std::uint64_t kSeed = 31;

struct Request {
  Problem problem;
  device::Machine machine = device::machine_preset("gc200");
  Options options;
};

// Small layers on a few tiles with little memory: most have no plan.
inline Request random_request(Random& random) {
  const std::int64_t sides[] = {1, 1, 4, 8}, memory[] = {1024, 2048, 4096, 16384};
  const double densities[] = {0.01, 0.1, 0.5};
  Request r;
  const std::int64_t side = sides[random.below(4)];
  r.problem.block = {side, side};
  r.problem.size = {1 + random.below(8) / 7, side * 4 * (1 + random.below(6)),
                    side * 4 * (1 + random.below(6)), 1 + random.below(60)};
  r.problem.density = densities[random.below(3)];
  r.problem.data_type = random.below(2) == 0 ? DataType::Half : DataType::Float;
  r.problem.grad_a = random.below(2) == 0;
  r.problem.grad_w = random.below(2) == 0;
  r.machine.tiles = 2 + random.below(12);
  r.machine.tile_memory = Bytes(memory[random.below(4)]);
  r.options.available_memory_proportion = random.below(2) == 0 ? 0.6 : 0.1;
  r.options.shared_buckets = random.below(2) == 0;
  // Without buckets nearly everything fits, in rounds. Both options ask for them, and the second
  // leaves R in large blocks open.
  if (*r.options.shared_buckets)
    r.options.constraints.use_dense = false;
  else
    r.options.operand_placement = Placement::AtHome;
  return r;
}

template <class Visit>
void for_requests_without_plan(int count, Visit&& visit) {
  Random random(kSeed);
  for (int i = 0, seen = 0; seen < count; ++i) {
    ASSERT_LT(i, 50 * count);
    const Request r = random_request(random);
    if (plan(r.problem, r.machine, r.options).status != PlanStatus::NoPlan) continue;
    ++seen;
    SCOPED_TRACE(testing::Message()
                 << "seed " << kSeed << " case " << i << ": " << to_string(r.problem) << " on "
                 << r.machine.tiles << " x " << r.machine.tile_memory.value);
    visit(r);
  }
}

// The first of that kind, or nullptr.
inline const Relaxation* find(const NoFit& n, RelaxationKind kind) {
  for (const Relaxation& r : n.relaxations)
    if (r.kind == kind) return &r;
  return nullptr;
}

}  // namespace tessera::planner
