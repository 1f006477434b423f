#pragma once

#include <vector>

#include "tessera/runtime/internal/hand_over.hpp"
#include "tessera/runtime/internal/home_buckets.hpp"

namespace tessera::runtime::internal {

// The slots and homes that a pass of a network has in common with other steps of the program: the
// slots of its home buckets, or the home of a dense R, and the homes from which its first exchange
// fetches its operands. Such a pass neither loads from the host nor collects results. All must have
// their slots before the pass is declared.
struct PassHomes {
  BucketUse bucket_buffers;
  std::vector<BucketSlots> buckets;  // by tile, cells in the order Yzx; GradW reads the words only

  Cleared cleared = Cleared::All;                      // of the padding of `in`
  const TensorHome *in = nullptr, *weights = nullptr;  // of Fwd and GradA; weights: a dense R
  const TensorHome *q = nullptr, *s = nullptr;         // of GradW
  BroughtBeside beside;
};

}  // namespace tessera::runtime::internal
