#pragma once

#include <cstdint>
#include <span>

#include "tessera/base/data_type.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/base/units.hpp"
#include "tessera/codelets/cost/matmul_cycles.hpp"

// Cycles of the codelets that look up rows of an encoded matrix. PopLibs' estimators of its kernels
// for that return 0, so all figures but those of gather_cycles and scatter_add_cycles are counts of
// instructions, one a cycle and worker, as in network_cycles.hpp. All functions are pure, never
// allocate and are O(1). Sizes must be >= 0, workers >= 1.
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

// The work of a tile that adds slices to the sums of their places.
struct ScatterWork {
  std::int64_t ids = 0;      // of the whole list, sorted by place
  std::int64_t slowest = 0;  // entries of the worker with the most
  std::int64_t columns = 0;  // values that the tile adds for an entry
};

// Adds slices to sums by a list that is sorted by place: each worker finds its entries by bisection
// and adds `columns` values for each. It is PopLibs 3.4's estimate of its MultiUpdateAdd vertex
// (popopsCycleEstimators.cpp) in the worst case of its offsets: 17 or, for halves, 18 cycles, 11 or
// 12 for an entry with its first value and 3 for each further one. Beside it, 2 instructions load
// the number of the slice of an entry, which PopLibs' slices do not need, 1 widens a value of 16
// bits, and a step of the bisection takes 6.
Cycles scatter_add_cycles(const ScatterWork& work, DataType type, std::int64_t workers);

// Returns the most entries of any worker if a sorted list is dealt in runs as even as possible that
// do not part equal places: two workers may not add to one sum. O(entries).
template <class Number>
std::int64_t most_entries(std::span<const Number> sorted, std::int64_t workers) {
  const std::int64_t even = ceil_div(std::ssize(sorted), workers);
  std::int64_t most = 0, begin = 0;
  for (std::int64_t i = 1; i <= std::ssize(sorted); ++i) {
    const bool ends = i == std::ssize(sorted) ||
                      (i - begin >= even && sorted[std::size_t(i)] != sorted[std::size_t(i - 1)]);
    if (!ends) continue;
    most = i - begin > most ? i - begin : most;
    begin = i;
  }
  return most;
}

}  // namespace tessera::codelets
