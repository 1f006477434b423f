#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tessera/base/dims.hpp"

namespace tessera::pod {

// The devices of a pod spread over several processes. All of them make the same calls with the same
// operands and options, each runs some of the devices, and all have the results of all devices: the
// results, ledgers and checks of one process, bit for bit. distributed::PodRanks is one over ranks.
class DeviceSplit {
 public:
  virtual ~DeviceSplit() = default;

  // Returns the devices that this process runs, as a run of the `count` that run at all. The runs
  // of all processes are all devices, each once.
  virtual Range own(std::int64_t count) const = 0;

  // Fills the lists of other processes. `lists` has one for each device; those of own(size) are
  // there, and the others are empty.
  virtual void complete(std::span<std::vector<std::byte>> lists) = 0;

  // Returns true if it is given true in any process.
  virtual bool any(bool own) = 0;
};

}  // namespace tessera::pod
