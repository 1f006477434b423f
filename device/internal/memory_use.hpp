#pragma once

#include "tessera/device/internal/slots.hpp"
#include "tessera/device/memory.hpp"

namespace tessera::device::internal {

// Without names of phases. O(slots * phases).
MemoryUse memory_use(const Slots& slots);

}  // namespace tessera::device::internal
