#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "tessera/base/error.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/codelets/cost/matmul_cycles.hpp"
#include "tessera/planner/internal/layout.hpp"

namespace tessera::planner::internal {

// Cycles and temporary bytes of one step of a pass.
struct Step {
  const char* name = nullptr;
  std::int64_t cycles = 0, temp = 0;
};

// The steps of one pass in running order. Fixed room: filled in the innermost loop of the search.
struct PassEstimate {
  Pass pass = Pass::Fwd;
  std::array<Step, 10> steps;
  std::size_t count = 0;
  std::int64_t cycles = 0;  // sum
  std::int64_t temp = 0;    // largest
  std::int64_t barriers = 0, launches = 0;
  std::int64_t questions = 0;  // whether anything has to travel

  void add(const char* name, std::int64_t step_cycles, std::int64_t step_temp) {
    TESSERA_ASSERT(count < steps.size());
    steps[count++] = {name, step_cycles, step_temp};
    cycles += step_cycles;
    temp = std::max(temp, step_temp);
  }
  // One exchange step and the barrier before it, when it moves anything.
  void note_exchange(std::int64_t step_cycles) { barriers += step_cycles > 0; }
  void note_compute(std::int64_t times = 1) { launches += times; }
};

struct Estimate {
  BucketSize bucket;
  std::array<PassEstimate, 3> passes;
  std::size_t pass_count = 0;
  std::int64_t cycles = 0, temp = 0, resident = 0;
};

// What every step of one cut costs. Pure; never allocates after the first few calls per thread.
Estimate estimate(const Case& c, const Cut& cut, const BucketSize& bucket);

// The parts of estimate: a pass each.
PassEstimate estimate_fwd(const Case& c, const Cut& cut, const BucketSize& bucket);
PassEstimate estimate_grad_a(const Case& c, const Cut& cut, const BucketSize& bucket);
PassEstimate estimate_grad_w(const Case& c, const Cut& cut, const BucketSize& bucket);

// Bytes that lie on a tile all the time: its bucket and its even share of the dense operands.
std::int64_t resident_bytes(const Case& c, const Cut& cut, const BucketSize& bucket);

// Expected cycles of propagation: `steps` exchanges of `bytes` to every tile, each with a compute
// step in which most tiles only look for records, and one question, in case anything spills. A
// spill almost always finds room one step away.
std::int64_t propagation_cycles(const Case& c, double spill_chance, std::int64_t steps,
                                std::int64_t bytes);

// Helpers that more than one pass uses.
// Cycles until a tile has begun to receive from `senders` others in one exchange.
std::int64_t receive_starts(const Case& c, std::int64_t senders);
// Working out one question and telling all tiles, without its barrier and launch.
std::int64_t control_cycles(const device::Machine& machine);
// Of `tiles` that hold equal shares of `rows`, those that send to one that needs all rows: the
// others, or all with a share when somebody has none.
std::int64_t other_sharers(std::int64_t tiles, std::int64_t rows);
codelets::MatMulKernel kernel_of(const Case& c, Method method, BlockShape block);
std::int64_t zeroing_cycles(const Case& c, std::int64_t partials);
// A dense operand before a pass: a tile needs `needed` grains of the `all` there are.
struct Fetch {
  std::int64_t needed = 0, all = 0, tiles = 0, grain_bytes = 0;
  bool at_home = false;  // the tile alone takes these, and holds them
};
// Bytes that a tile must fetch. Upstream: none when its even share of the operand is as large.
std::int64_t fetched_bytes(const Case& c, const Fetch& fetch);

}  // namespace tessera::planner::internal
