#pragma once

#include <cstdint>

#include "tessera/base/units.hpp"
#include "tessera/codelets/cost/method.hpp"

// Cycles of the sparse kernels, as affine functions of real counts: the planner gives them expected
// counts and the engine the counts of the data, so that both say the same of the same work.
//
//   step = scan + load(rows, non-zeros of the tile)
//          + workers * max over workers of worker(rows, non-zeros of that worker)
//
// A worker issues one instruction every `workers` cycles, hence the factor. Counts are blocks and
// block rows in block methods. Source of the figures: PopSparse's own estimators (PopLibs 3.4).
// All functions are pure, never allocate and are O(1).
namespace tessera::codelets {

// start + rows * per_row + nonzeros * per_nonzero
struct LinearCycles {
  std::int64_t start = 0, per_row = 0, per_nonzero = 0;

  friend bool operator==(const LinearCycles&, const LinearCycles&) = default;
  constexpr Cycles operator()(std::int64_t rows, std::int64_t nonzeros) const {
    return Cycles(start + rows * per_row + nonzeros * per_nonzero);
  }
};

// One worker's own cycles; z is the batch columns of that worker (of the tile in ElementTranspose
// and GradW). All buckets of one step together: `start` is paid once.
//   nonzeros  ElementTranspose deals the non-zeros of each row to the workers in turn: give the sum
//             over the rows of ceil(non-zeros / workers)
// Blocks other than 4, 8 and 16 square are priced as the least number of such squares that covers
// them, the square's side being the first one not below the shorter side: 5 x 30 costs four 8 x 8.
// A kernel with an ElementX method and a block is Error{InvalidArgument}, so is z < 0.
LinearCycles worker_cycles(const MatMulKernel& kernel, std::int64_t z);

// What the supervisor itself does for each row and block: weight loads. Zero in element methods.
LinearCycles supervisor_load_cycles(const MatMulKernel& kernel, std::int64_t z);

// What a supervisor met on its way through the buckets of one step.
struct BucketScan {
  std::int64_t records_passed = 0;   // records in buckets where nothing matched
  std::int64_t matches = 0;          // buckets with a matching record
  std::int64_t match_positions = 0;  // sum over these of the match's place, the first is 1
};

// Cycles to find the records of the tile's own cell.
struct ScanCycles {
  std::int64_t start = 0, per_record_passed = 0, per_position = 0, per_match = 0;

  friend bool operator==(const ScanCycles&, const ScanCycles&) = default;
  constexpr Cycles operator()(const BucketScan& scan) const {
    return Cycles(start + per_record_passed * scan.records_passed +
                  per_position * scan.match_positions + per_match * scan.matches);
  }
};
// Those of a method; constants of the kernels, see codelets/cost/README.md.
ScanCycles scan_cycles(Method method);

// The same for averages: `matching` of `buckets` buckets hold a match, all hold
// `records_per_bucket` records, a match is in the middle on average. Rounded down per match.
Cycles expected_scan_cycles(Method method, std::int64_t buckets, std::int64_t matching,
                            double records_per_bucket);

}  // namespace tessera::codelets
