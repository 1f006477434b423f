#pragma once

#include <cstdint>
#include <span>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/units.hpp"
#include "tessera/codelets/cost/matmul_cycles.hpp"
#include "tessera/codelets/kernel.hpp"

namespace tessera::codelets {

// One compute step of one tile: the buckets it visits and what the formulas need to know of it.
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

// The cost formulas' kernel for these arguments: method, types, block as the method reads it.
MatMulKernel cost_kernel(const VisitCostArgs& args);

// What the step costs, from the real words and the formulas the planner uses:
//   scan of the buckets + weight loads + workers * (overhead + cycles of the slowest workers)
//   scan     A matching record is priced at its place in the bucket; records behind the last match
//            cost as much as records of a bucket where nothing matched. Of several matches in one
//            bucket each later one starts where the one before was found.
//   workers  Fwd, GradA with own meta-information: rows and z of each WorkerEntry.
//            GradATransposed of elements: each row's non-zeros dealt in turn, in step row by row.
//            GradW: the runs of the GradW table; AMP: all workers on every block.
//            Block Fwd, GradATransposed: z shared out once for the tile, ceil(z / workers) at most.
//            They meet at the end of every record: per record the slowest one counts. The overhead
//            is paid once per step, and not at all when nothing matches.
// One record that is spread evenly costs exactly what the planner says of its counts. O(records +
// rows); allocates nothing; thread-safe. GradW on a matching record without a table of GradW
// workers, and what worker_cycles() refuses, are Error{InvalidArgument}.
Cycles visit_cycles(const VisitCostArgs& args);

}  // namespace tessera::codelets
