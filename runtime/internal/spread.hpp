#pragma once

#include <cstdint>

#include "tessera/base/dims.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/runtime/pass_spec.hpp"

namespace tessera::runtime::internal {

// A dense operand [groups][columns][rows] that is spread over all tiles in equal runs, as PopSparse
// allocates its tensors.
struct SpreadOperand {
  std::int64_t groups = 1, columns = 0, rows = 0;
  DataType type = DataType::Half;
};

// A slice of such an operand.
struct SpreadSlice {
  std::int64_t group = 0;
  Range columns, rows;
};

// Returns the number of tiles that hold a part of the slice. O(columns).
std::int64_t spread_senders(const SpreadOperand& operand, const SpreadSlice& slice,
                            std::int64_t tiles);

// Returns the cycles in which every tile puts its run of [groups * rows][z] elements in order.
Cycles arrange_cycles(const PassSpec& spec, std::int64_t rows, const device::Machine& machine);

}  // namespace tessera::runtime::internal
