#pragma once

#include "tessera/runtime/internal/hand_over.hpp"
#include "tessera/runtime/internal/home_buckets.hpp"

namespace tessera::runtime::internal {

// The slots and homes that a pass has in common with other steps of the program of a network: the
// slots of its home buckets, or the home of a dense R, and the homes from which its first exchange
// fetches its operands. All must have their slots before the pass is declared.
struct PassHomes {
  // True: the pass is alone. It loads operands and buckets from the host, and the host collects its
  // result.
  bool is_host = false;

  HomeBuckets buckets;  // GradW reads the words only

  Cleared cleared = Cleared::All;                      // of the padding of `in`
  const TensorHome *in = nullptr, *weights = nullptr;  // of Fwd and GradA; weights: a dense R
  const TensorHome *q = nullptr, *s = nullptr;         // of GradW
  BroughtBeside beside;
};

// The homes of a pass alone.
inline const PassHomes kHost{.is_host = true};

}  // namespace tessera::runtime::internal
