#pragma once

#include <cstdint>

#include "tessera/device/machine.hpp"
#include "tessera/runtime/internal/tensor_home.hpp"
#include "tessera/runtime/pass_spec.hpp"

namespace tessera::runtime::internal {

// Returns the number of tiles that hold a part of a slice, if the operand of all groups is spread
// over all tiles in equal runs of [groups][columns][rows], as PopSparse allocates its tensors.
// O(columns).
std::int64_t spread_senders(const PassSpec& spec, const TensorHome& operand, const HomeShare& slice,
                            std::int64_t tiles);

// Returns the cycles in which every tile puts its run of [groups * rows][z] elements in order.
Cycles arrange_cycles(const PassSpec& spec, std::int64_t rows, const device::Machine& machine);

}  // namespace tessera::runtime::internal
