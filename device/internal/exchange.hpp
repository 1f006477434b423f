#pragma once

#include <vector>

#include "tessera/device/engine.hpp"
#include "tessera/device/internal/slots.hpp"

namespace tessera::device::internal {

Exchange prepare_exchange(std::vector<Gather> gathers, const Slots& slots, const Machine& machine);

// The two ways to carry a gather out: copy to the destinations' own memory, or make them look at
// the sources.
void copy_gather(const Gather& gather, Slots& slots);
void share_gather(const Gather& gather, Slots& slots);

// Copies rows to gapless memory.
void copy_rows(const ByteRows& from, std::byte* to);

}  // namespace tessera::device::internal
