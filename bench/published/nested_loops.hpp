#pragma once

#include <cstdint>

#include "tessera/base/dims.hpp"
#include "tessera/device/ledger.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/partitioner/buckets.hpp"

namespace tessera::bench {

// The work of PopSparse's program for the spilled blocks of a forward pass.
struct NestedLoops {
  std::int64_t moves = 0;      // of all buckets by one tile, and the first one to where loops begin
  std::int64_t visits = 0;     // compute steps
  std::int64_t decisions = 0;  // of a loop, a condition or a choice of the buffer
  std::int64_t updates = 0;    // of a counter on the control tile

  friend bool operator==(const NestedLoops&, const NestedLoops&) = default;
};

// Counts the work of PopSparse's nested loops (PopLibs 3.4, FullyConnectedOnTile.cpp): x outermost,
// z innermost, with one bound of y for all x, which is a full turn as soon as anything moves along
// x; x distances without blocks are passed; a move follows each visit as long as visits are left.
// An axis that is not cut has no loop.
NestedLoops nested_loops(const partitioner::Travel& travel, const Dims& splits);

// Adds to the ledger of a forward pass of this library the steps that PopSparse's program has
// beyond it. Decisions cost what the engine charges for one, an update costs a launch and the
// decision's cycles on the control tile, and moves and visits cost as much as the last of the
// ledger. No constant is added. Nothing is added if nothing has spilled.
void charge_nested_loops(const partitioner::Travel& travel, const Dims& splits,
                         const device::Machine& machine, device::Ledger& ledger);

}  // namespace tessera::bench
