#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "tessera/pod/pod_ledger.hpp"
#include "tessera/verify/self_check.hpp"

namespace tessera::pod::internal {

// The outcome of a device step for one device, beside its results.
struct DeviceOutcome {
  DeviceFigures figures;
  verify::Checksums checks;
  bool stopped = false;
};

// Returns the outcome and the bytes of the results as one list, and takes them from one.
std::vector<std::byte> pack(const DeviceOutcome& outcome, std::span<const std::byte> results);
DeviceOutcome unpack(std::span<const std::byte> list, std::span<std::byte> results);

}  // namespace tessera::pod::internal
