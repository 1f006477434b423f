#pragma once

#include <vector>

#include "tessera/runtime/internal/home_buckets.hpp"

namespace tessera::runtime::internal {

// The slots that a pass of a network uses instead of its own, because other steps of the program
// write or read them too: its home buckets and its dense operands. Such a pass neither loads from
// the host nor collects results. The buffers must be set before the pass declares its steps, and
// the slots before it adds its own.
struct PassHomes {
  BucketUse bucket_buffers;
  std::vector<BucketSlots> buckets;  // by tile, cells in the order Yzx; GradW reads the words only

  // The homes of an operand: owned slots with the rows and columns that a tile holds before the
  // pass, as spmm_pass.cpp and grad_w_pass.cpp share them out.
  struct Operand {
    BufferId buffer;
    std::vector<device::SlotId> slots;  // by tile, cells in the order Yzx
  };
  Operand in;    // of Fwd and GradA
  Operand q, s;  // of GradW
};

}  // namespace tessera::runtime::internal
