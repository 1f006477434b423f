#pragma once

namespace tessera::host::internal {

// The result of `tessera machine calibrate` on 2026-11-21, on the processor that it names.
extern const char* const kDefaultRates;

}  // namespace tessera::host::internal
