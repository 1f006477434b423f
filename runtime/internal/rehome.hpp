#pragma once

#include <span>
#include <vector>

#include "tessera/device/ledger.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/partitioner/buckets.hpp"

namespace tessera::runtime::internal {

// What it costs to bring R's values from the buckets of one layout to those of another, a group
// each: pack, exchange, put in place. Values are counted in the buckets; all of them are taken to
// leave their tile. Only charged: both layouts are filled by the host.
std::vector<device::StepRecord> rehome_steps(std::span<const partitioner::Buckets> from,
                                             std::span<const partitioner::Buckets> to,
                                             const device::Machine& machine);

}  // namespace tessera::runtime::internal
