#include "tessera/codelets/cost/dense_cycles.hpp"

#include <algorithm>
#include <array>

#include "tessera/base/int_math.hpp"
#include "tessera/codelets/cost/vector_cycles.hpp"

namespace tessera::codelets {
namespace {

// Cycles of a worker for one group of weights: `fixed` for 1, 2, and 3 or more rows of the field.
// The first group of a column begins the sums, all others add to them.
struct FieldCycles {
  std::array<std::int64_t, 3> fixed;
  std::int64_t per_row = 0;    // from the fourth row on
  std::int64_t clear = 0;      // of the first group
  std::int64_t clear_row = 0;  // of the first group, for each row
};

FieldCycles field_cycles(const DenseKernel& kernel, bool first) {
  if (kernel.data_type != DataType::Float) {
    const std::int64_t adds = first ? 0 : 1;
    return {{25 + adds, 34 + adds, 30 + adds}, 4};
  }
  FieldCycles cycles{{47, 46, 46}, 8};
  // A row of sums is cleared in stores of two floats.
  if (first) {
    cycles.clear = 2;
    cycles.clear_row = kernel.units / 2;
  }
  return cycles;
}

std::int64_t tile_cycles(const DenseKernel& kernel, std::int64_t field, bool first) {
  const FieldCycles f = field_cycles(kernel, first);
  const std::int64_t rows = ceil_div(field, kernel.workers);
  const std::int64_t fixed = f.fixed[std::size_t(std::min<std::int64_t>(rows, 3) - 1)];
  const std::int64_t more = std::max<std::int64_t>(rows - 3, 0) * f.per_row;
  return kernel.workers * (fixed + more + f.clear + f.clear_row * rows);
}

}  // namespace

Cycles dense_cycles(const DenseKernel& kernel, const DenseWork& work) {
  if (work.field == 0 || work.inner == 0 || work.columns == 0) return {};
  const bool is_float = kernel.data_type == DataType::Float;
  const std::int64_t depths = ceil_div(work.inner, kernel.depth());
  const std::int64_t groups = ceil_div(work.columns, kernel.units);
  const std::int64_t load = kernel.units * DenseKernel::kUnitBytes / kernel.load_bytes;
  // The first numbers are the supervisor's: one call, one step along the terms, one group.
  const std::int64_t start = is_float ? 50 + 12 + 11 : 50 + 13 + 11 + kernel.workers * 7;
  const std::int64_t per_depth = is_float ? 16 : 15 + kernel.workers * 3;
  const std::int64_t first_group = (is_float ? 26 : 25) + load;
  return Cycles(start + groups * (first_group + tile_cycles(kernel, work.field, true)) +
                (depths - 1) *
                    (per_depth + groups * (25 + load + tile_cycles(kernel, work.field, false))));
}

Cycles dense_reorder_cycles(const DenseKernel& kernel, std::int64_t lines, std::int64_t across,
                            bool transposed) {
  if (!transposed) return copy_cycles(lines * across * bytes_of(kernel.data_type), kernel.workers);
  const std::int64_t side = kernel.depth();
  return transpose_blocks_cycles(ceil_div(lines, side) * ceil_div(across, side), {side, side},
                                 kernel.data_type, kernel.workers);
}

}  // namespace tessera::codelets
