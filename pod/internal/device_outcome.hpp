#pragma once

#include <cstddef>
#include <cstdint>
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

// Adds the outcome and the bytes of the results to a list, and takes them from its begin.
void pack(DeviceOutcome outcome, std::span<const std::byte> results, std::vector<std::byte>& to);
DeviceOutcome unpack(std::span<const std::byte>& from, std::span<std::byte> results);

}  // namespace tessera::pod::internal
