#include <algorithm>
#include <limits>

#include "tessera/base/int_math.hpp"
#include "tessera/planner/internal/static_counted.hpp"
#include "tessera/planner/internal/static_counted_search.hpp"
#include "tessera/planner/internal/static_estimate.hpp"

namespace tessera::planner::internal {
namespace {

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
  std::int64_t kernel = std::numeric_limits<std::int64_t>::max(), bytes = kernel;
  for_each_share(c, [&](const CountedCut& cut) {
    const std::int64_t blocks = ceil_div(c.counts.blocks, cut.tiles);
    kernel = std::min(kernel, least_kernel_cycles(c, cut.share, blocks));
    bytes = std::min(bytes, least_bytes(c, cut.share, cut.parts, blocks));
  });
  const Dims size = c.problem.size_in_blocks();
  bytes += arrange_rows(c, size.x) + arrange_rows(c, size.y);
  return {Cycles(kernel), Cycles(bytes), Cycles(counted_waiting(c, Pass::Fwd, false, false))};
}

}  // namespace tessera::planner::internal
