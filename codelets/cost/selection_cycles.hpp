#pragma once

#include <cstdint>

#include "tessera/base/units.hpp"
#include "tessera/codelets/best_places.hpp"

// Cycles of keeping the best places of a dense gradient on a tile (best_places.hpp). No estimator
// is published, because PopSparse leaves the choice to the host. The figures are counts of
// instructions by the rules of network_cycles.hpp: one a cycle, in vectors of two floats, work
// dealt evenly to the workers, each of which starts in 15 cycles. All functions are pure, never
// allocate and are O(1). Sizes must be >= 0, workers and `keep` >= 1.
namespace tessera::codelets {

// The work of a tile on one part of the gradient.
struct SelectionSize {
  std::int64_t elements = 0, blocks = 0;  // of the part
  std::int64_t keep = 0;                  // of the tile's list
};

// Returns the cycles of add_best() or finish_best() with so much work.
Cycles selection_cycles(const SelectionSize& size, const SelectionWork& work, std::int64_t workers);

// Returns the work that is expected of a tile which looks at `blocks` free blocks of random scores,
// in any number of parts, finish_best() included. The slowest of many tiles may make one selection
// more.
SelectionWork expected_selection(std::int64_t blocks, std::int64_t keep);

// Returns the bytes of a tile's memory for its list.
std::int64_t best_list_bytes(std::int64_t keep);

// Bytes of a tile's memory for the request of the host, and for counter and threshold of its list.
inline constexpr std::int64_t kSelectionHeaderBytes = 28;

}  // namespace tessera::codelets
