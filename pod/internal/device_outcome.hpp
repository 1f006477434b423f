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

// Returns the outcome and the bytes of the results as one list, and takes them from one.
std::vector<std::byte> pack(DeviceOutcome outcome, std::span<std::byte> results);
DeviceOutcome unpack(std::span<const std::byte> list, std::span<std::byte> results);

// Adds the figures of one device's check to those of all, with the device where they name a place.
void add_checksums(const verify::Checksums& one, std::int64_t device, verify::Checksums& all,
                   bool is_first);

}  // namespace tessera::pod::internal
