#include "tessera/tools/static_study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tessera/codelets/cost/static_cycles.hpp"
#include "tessera/planner/sparse_below.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tools/static_layer.hpp"

namespace tessera::tools {
namespace {

constexpr std::uint64_t kSeed = 1;

// The pattern of sparse::random_pattern() with this seed, without its values.
sparse::Csr<char> drawn_pattern(const Problem& problem, std::int64_t blocks) {
  const Dims size = problem.size_in_blocks();
  sparse::Csr<char> result;
  result.rows = size.x;
  result.cols = size.y;
  result.block = problem.block;
  const std::int64_t block_cols = result.block_cols();
  result.row_begin.assign(std::size_t(result.block_rows()) + 1, 0);
  result.col.reserve(std::size_t(blocks));
  for (const std::int64_t place :
       sparse::random_choice(result.block_rows() * block_cols, blocks, kSeed)) {
    result.col.push_back(std::int32_t(place % block_cols));
    ++result.row_begin[std::size_t(place / block_cols) + 1];
  }
  for (std::size_t row = 1; row < result.row_begin.size(); ++row)
    result.row_begin[row] += result.row_begin[row - 1];
  return result;
}

std::int64_t places_of(const Problem& problem) {
  const Dims size = problem.size_in_blocks();
  return (size.x / problem.block.rows) * (size.y / problem.block.cols);
}

std::int64_t blocks_of(const Problem& problem, double density) {
  const std::int64_t places = places_of(problem);
  return std::clamp<std::int64_t>(std::llround(density * double(places)), 0, places);
}

}  // namespace

StaticStudy::Drawn& StaticStudy::drawn(const Problem& problem, std::int64_t blocks) {
  const Dims size = problem.size_in_blocks();
  const auto found = std::ranges::find_if(drawn_, [&](const Drawn& d) {
    return d.pattern.rows == size.x && d.pattern.cols == size.y &&
           d.pattern.block == problem.block && d.pattern.blocks() == blocks;
  });
  if (found != drawn_.end()) {
    drawn_.splice(drawn_.begin(), drawn_, found);
    return drawn_.front();
  }
  std::int64_t kept = blocks;
  for (const Drawn& d : drawn_) kept += d.pattern.blocks();
  for (; kept > kMostStaticBlocks && !drawn_.empty(); drawn_.pop_back())
    kept -= drawn_.back().pattern.blocks();
  // Moving the matrix does not move its arrays.
  sparse::Csr<char> pattern = drawn_pattern(problem, blocks);
  planner::StaticPlanner planner(block_pattern(pattern));
  drawn_.push_front({std::move(pattern), std::move(planner)});
  return drawn_.front();
}

planner::StaticCostResult StaticStudy::random(const Problem& problem,
                                              const device::Machine& machine,
                                              const planner::StaticOptions& options) {
  if (!codelets::has_static_kernel(problem.block))
    return {std::nullopt, 0, "no static kernel for these blocks"};
  const std::int64_t blocks = blocks_of(problem, problem.density);
  if (blocks > kMostStaticBlocks)
    return {std::nullopt, 0,
            fmt::format("no static plan: {} blocks; {} are planned at most", blocks,
                        kMostStaticBlocks)};
  return drawn(problem, blocks).planner.quick_cost(with_static_sums(problem), machine, options);
}

double StaticStudy::highest_density(const Problem& problem, const device::Machine& machine,
                                    double cycles) {
  if (!codelets::has_static_kernel(problem.block)) return 0;
  const Problem priced = with_static_sums(problem);
  const auto may_cost_less = [&](std::int64_t step) {
    const std::int64_t blocks = blocks_of(problem, double(step) / planner::kDensitySteps);
    return blocks <= kMostStaticBlocks &&
           double(planner::static_floor(priced, machine, blocks).value) < cycles;
  };
  std::int64_t low = 0, high = planner::kDensitySteps + 1;
  while (high - low > 1) {
    const std::int64_t middle = (low + high) / 2;
    (may_cost_less(middle) ? low : high) = middle;
  }
  return double(low) / planner::kDensitySteps;
}

}  // namespace tessera::tools
