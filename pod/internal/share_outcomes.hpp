#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "tessera/base/units.hpp"
#include "tessera/pod/device_ranks.hpp"
#include "tessera/pod/pod_layer.hpp"
#include "tessera/verify/self_check.hpp"

namespace tessera::pod::internal {

// The figures of one device in a device step.
struct DeviceOutcome {
  Cycles cycles;
  Bytes moved;
  bool stopped = false;
  verify::Checksums checksums;
  std::optional<DeviceStruck> struck;
};

// The devices of a step, and the ranks that ran them.
struct SharedDevices {
  std::span<const std::size_t> devices;
  std::function<int(std::size_t)> rank_of;
  std::function<std::span<std::byte>(std::size_t)> data;  // of the results of a device
};

// Tells all ranks the outcomes and data of the devices of this one, and writes those of the others
// to `outcomes` and to their data, which have the same sizes on all ranks.
void share_outcomes(const DeviceRanks& ranks, const SharedDevices& shared,
                    std::vector<DeviceOutcome>& outcomes);

// Returns the least number that a rank gives, or nothing if none gives one.
std::optional<std::size_t> least_of(const DeviceRanks& ranks, std::optional<std::size_t> own);

}  // namespace tessera::pod::internal
