#include <algorithm>
#include <limits>

#include "tessera/base/int_math.hpp"
#include "tessera/codelets/cost/static_cycles.hpp"
#include "tessera/codelets/cost/vector_cycles.hpp"
#include "tessera/planner/internal/static_counted_search.hpp"

namespace tessera::planner::internal {
namespace {

// Returns the cycles of a tile with so many blocks in one row. Elements are shared by all workers,
// or by half of them for half of the columns.
std::int64_t least_kernel(const StaticCase& c, std::int64_t share, std::int64_t blocks) {
  const codelets::StaticKernel kernel{c.problem.block, c.problem.data_type};
  const std::int64_t workers = c.machine.workers;
  if (!c.problem.is_element_wise())
    return (codelets::static_supervisor_cycles(kernel)(1, blocks) +
            workers * codelets::static_worker_cycles(kernel, ceil_div(share, workers))(1, blocks))
        .value;
  const auto worker = [&](std::int64_t z, std::int64_t count) {
    return workers * codelets::static_worker_cycles(kernel, z)(1, count).value;
  };
  return std::min(worker(share, ceil_div(blocks, workers)),
                  worker(round_up(ceil_div(share, 2), c.grain()), ceil_div(2 * blocks, workers)));
}

// A column has no more blocks on a tile than in the pattern, so a tile needs several columns.
std::int64_t least_bytes(const StaticCase& c, std::int64_t share, std::int64_t parts,
                         std::int64_t blocks) {
  const std::int64_t columns = ceil_div(blocks, std::ranges::max(c.counts.columns));
  const std::int64_t operand = columns * c.problem.block.cols * share * c.data_bytes();
  const std::int64_t values = parts == 1 ? 0 : blocks * c.problem.block.area() * c.data_bytes();
  return ceil_div(operand + values, c.machine.exchange_bytes_per_cycle);
}

}  // namespace

StaticBounds bounds_of(const StaticCase& c) {
  if (c.counts.blocks == 0) return {};
  const std::int64_t grains = c.columns() / c.grain();
  std::int64_t kernel = std::numeric_limits<std::int64_t>::max(), bytes = kernel;
  for (std::int64_t asked = 1; asked <= std::min(grains, c.machine.tiles); ++asked) {
    const std::int64_t share = ceil_div(grains, asked), parts = ceil_div(grains, share);
    const std::int64_t blocks = ceil_div(c.counts.blocks, c.machine.tiles / parts);
    kernel = std::min(kernel, least_kernel(c, share * c.grain(), blocks));
    bytes = std::min(bytes, least_bytes(c, share * c.grain(), parts, blocks));
  }
  const Dims size = c.problem.size_in_blocks();
  for (const std::int64_t rows : {size.x, size.y})
    bytes += codelets::arrange_cycles(rows * c.columns() * c.data_bytes(), c.machine.tiles,
                                      c.machine.arrange_bytes_per_cycle)
                 .value;
  return {Cycles(kernel), Cycles(bytes), Cycles(counted_waiting(c, Pass::Fwd, false, false))};
}

}  // namespace tessera::planner::internal
