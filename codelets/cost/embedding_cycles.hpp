#pragma once

#include <cstdint>

#include "tessera/base/data_type.hpp"
#include "tessera/base/units.hpp"
#include "tessera/codelets/cost/matmul_cycles.hpp"

// Cycles of the codelets that look up rows of an encoded matrix. PopLibs' estimators of its kernels
// for that return 0, so all figures but those of gather_cycles are counts of instructions, one a
// cycle and worker, as in network_cycles.hpp. All functions are pure, never allocate and are O(1).
// Sizes must be >= 0, workers >= 1.
namespace tessera::codelets {

// The work of a tile that walks the rows of its records (embedding.hpp).
struct RowsWork {
  BucketScan scan;                  // the search for the records of the cell
  std::int64_t rows = 0;            // of matching records
  std::int64_t slowest_values = 0;  // of looked-up rows, of the worker with the most
};

// Enters `requests` rows into a cleared table with a place of 16 bits for each of `rows` rows.
Cycles enter_rows_cycles(std::int64_t rows, std::int64_t requests, std::int64_t workers);

// Walks rows: the row, its length and its place in the table are loaded, compared, and skipped. The
// values of a row that is looked up take `kCopy` instructions each (column, value, store) or `kAdd`
// (column, operand, sum, store).
inline constexpr std::int64_t kCopyInstructions = 4, kAddInstructions = 5;
Cycles walk_rows_cycles(const RowsWork& work, std::int64_t per_value, std::int64_t workers);

// Copies n values by a list of places. PopLibs' estimate of its SparseGather vertex.
Cycles gather_cycles(std::int64_t n, DataType type, std::int64_t workers);

// Walks a list of the places of n slices and adds `values` values in all to the sums that it names.
Cycles scatter_add_cycles(std::int64_t n, std::int64_t values, std::int64_t workers);

}  // namespace tessera::codelets
