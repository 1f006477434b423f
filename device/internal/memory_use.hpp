#pragma once

#include "tessera/device/internal/slots.hpp"
#include "tessera/device/memory.hpp"

namespace tessera::device::internal {

// Returns the memory that the slots need; the stages have no names. O(slots * stages).
MemoryUse memory_use(const Slots& slots);

}  // namespace tessera::device::internal
