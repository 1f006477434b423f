#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tessera/base/dims.hpp"
#include "tessera/distributed/communicator.hpp"
#include "tessera/pod/device_split.hpp"

namespace tessera::distributed {

// The modelled devices of a pod over ranks: each rank runs a run of them, and their results travel
// to all. Give it to the passes of a pod::PodLayer as `split` on every rank, with the same operands
// everywhere; each rank then has the results and ledgers of one process. A rank encodes the weights
// of all devices, as one process does. The ranks must outlive it.
class PodRanks : public pod::DeviceSplit {
 public:
  explicit PodRanks(Communicator& ranks) : ranks_(ranks) {}

  Range own(std::int64_t count) const override;
  void complete(std::span<std::vector<std::byte>> lists) override;
  bool any(bool own) override;

 private:
  Communicator& ranks_;
};

}  // namespace tessera::distributed
