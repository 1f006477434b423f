#pragma once

namespace tessera::host::internal {

// What `tessera machine calibrate` found on 2026-11-21 on the processor it names.
extern const char* const kDefaultRates;

}  // namespace tessera::host::internal
