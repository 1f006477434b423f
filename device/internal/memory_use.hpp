#pragma once

#include "tessera/device/internal/slots.hpp"
#include "tessera/device/memory.hpp"

namespace tessera::device::internal {

// Returns the memory that the slots need; the phases have no names. O(slots * phases).
MemoryUse memory_use(const Slots& slots);

}  // namespace tessera::device::internal
