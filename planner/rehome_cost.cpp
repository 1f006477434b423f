#include "tessera/planner/rehome_cost.hpp"

#include <algorithm>

#include "tessera/base/int_math.hpp"
#include "tessera/codelets/cost/vector_cycles.hpp"

namespace tessera::planner {

Cycles pack_cycles(std::int64_t values, const device::Machine& machine) {
  // A worker issues every `workers` cycles; starting costs as much as in the vector kernels.
  constexpr std::int64_t kInstructions = 3, kStart = 20;
  if (values == 0) return Cycles(0);
  return Cycles(machine.workers * (kStart + kInstructions * ceil_div(values, machine.workers)));
}

RehomeCost rehome_cost(const Plan& from, const Plan& to, DataType type,
                       const device::Machine& machine) {
  const std::int64_t bytes = bytes_of(type);
  const std::int64_t out = from.nonzeros_per_bucket, in = to.nonzeros_per_bucket;
  const Cycles exchange =
      codelets::exchange_cycles(std::max(out, in) * bytes, {machine.exchange_bytes_per_cycle, 1});
  const Cycles steps = machine.sync + machine.launch + machine.launch;
  return {pack_cycles(out, machine) + exchange + pack_cycles(in, machine) + steps,
          Bytes((out + in) * bytes)};
}

}  // namespace tessera::planner
