#pragma once

#include <cstdint>

#include "tessera/base/units.hpp"
#include "tessera/codelets/cost/method.hpp"

// Cycles of the sparse kernels, as affine functions of counts. The planner passes expected counts
// and the engine the counts of the data, so both get the same cost for the same work.
//
//   step = scan + load(rows, non-zeros of the tile)
//          + workers * max over workers of worker(rows, non-zeros of that worker)
//
// A worker issues one instruction every `workers` cycles, hence the factor. Block methods count
// blocks and block rows. The source of the figures is PopSparse's own estimators (PopLibs 3.4). All
// functions are pure, never allocate and are O(1).
namespace tessera::codelets {

// A number of cycles: start + rows * per_row + nonzeros * per_nonzero.
struct LinearCycles {
  std::int64_t start = 0, per_row = 0, per_nonzero = 0;

  friend bool operator==(const LinearCycles&, const LinearCycles&) = default;
  constexpr Cycles operator()(std::int64_t rows, std::int64_t nonzeros) const {
    return Cycles(start + rows * per_row + nonzeros * per_nonzero);
  }
};

// Returns the cycles of one worker for all buckets of one step together, so `start` is paid once. z
// is the batch columns of that worker (in ElementTranspose and GradW, of the tile).
//   nonzeros  ElementTranspose deals the non-zeros of each row to the workers in turn: pass the sum
//             over the rows of ceil(non-zeros / workers)
// Blocks other than 4, 8 and 16 square are priced as the smallest number of such squares that
// covers them, with the first side that is not below the shorter side of the block: 5 x 30 costs as
// much as four 8 x 8. Throws Error{InvalidArgument} for an ElementX method with a block, and for z
// < 0.
LinearCycles worker_cycles(const MatMulKernel& kernel, std::int64_t z);

// Returns the cycles of the supervisor for each row and block: weight loads. Zero in element
// methods.
LinearCycles supervisor_load_cycles(const MatMulKernel& kernel, std::int64_t z);

// The counts of a supervisor's scan through the buckets of one step.
struct BucketScan {
  std::int64_t records_passed = 0;   // in buckets without a match, or after the last match
  std::int64_t matches = 0;          // buckets with a matching record
  std::int64_t match_positions = 0;  // sum over these of the match's place, counted from 1
};

// The cycles of finding the records of the tile's own cell, as a function of those counts.
struct ScanCycles {
  std::int64_t start = 0, per_record_passed = 0, per_position = 0, per_match = 0;

  friend bool operator==(const ScanCycles&, const ScanCycles&) = default;
  constexpr Cycles operator()(const BucketScan& scan) const {
    return Cycles(start + per_record_passed * scan.records_passed +
                  per_position * scan.match_positions + per_match * scan.matches);
  }
};

// Returns the scan cycles of a method: constants of the kernels, see codelets/cost/README.md.
ScanCycles scan_cycles(Method method);

// Returns the scan cycles for averages: `matching` of `buckets` buckets hold a match, each bucket
// holds `records_per_bucket` records, and a match is in the middle on average. Rounded down per
// match.
Cycles expected_scan_cycles(Method method, std::int64_t buckets, std::int64_t matching,
                            double records_per_bucket);

}  // namespace tessera::codelets
