#pragma once

#include <cstdint>
#include <span>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/units.hpp"
#include "tessera/codelets/cost/matmul_cycles.hpp"
#include "tessera/codelets/kernel.hpp"

namespace tessera::codelets {

// The arguments of visit_cycles(): one compute step of one tile, with the buckets it visits and the
// sizes that the formulas need.
struct VisitCostArgs {
  KernelKey key;
  bool grad_w_amp = false;               // block GradW with all workers on one block
  std::span<const void* const> buckets;  // words of each bucket, key.word_bits wide, end-marked
  std::int64_t sub_group = 0;            // the tile's own cell
  BlockShape block;                      // of the forward matrix, also for GradATransposed
  std::int64_t z = 0;                    // batch columns of this tile
  std::int64_t workers = 6;              // of a tile
  std::int64_t conv_units = 8;           // multiply-accumulate units for the types of `key`
};

// Returns the kernel in the terms of the cost formulas: method, types, block as the method reads
// it.
MatMulKernel cost_kernel(const VisitCostArgs& args);

// Returns the cost of the step, from the real words and the formulas that the planner uses:
//   scan of the buckets + weight loads + workers * (overhead + cycles of the slowest workers)
//   scan     A matching record is priced by its place in the bucket. Records after the last match
//            cost as much as records of a bucket without a match. If one bucket has several
//            matches, each later search starts at the match before.
//   workers  Fwd, GradA with separate meta-information: rows and z of each WorkerEntry.
//            GradATransposed of elements: the non-zeros of each row are dealt to the workers in
//            turn, and the workers advance together row by row.
//            GradW: the runs of the GradW table; AMP: all workers on every block.
//            Block Fwd, GradATransposed: z is shared out once for the tile, at most
//            ceil(z / workers) per worker.
//            The workers meet at the end of every record, so the slowest worker of each record
//            counts. The overhead is paid once per step, and not at all if nothing matches.
// One record whose work is spread evenly costs exactly the planner's cost of its counts. Throws
// Error{InvalidArgument} for GradW on a matching record without a table of GradW workers, and for
// arguments that worker_cycles() refuses. O(records + rows); allocates nothing; thread-safe.
Cycles visit_cycles(const VisitCostArgs& args);

}  // namespace tessera::codelets
