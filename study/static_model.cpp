#include "tessera/study/static_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tessera/codelets/cost/static_cycles.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/study/planned_model.hpp"
#include "tessera/study/static_layer.hpp"

namespace tessera::study {
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

std::int64_t drawn_blocks(const Problem& problem) {
  const auto places = std::int64_t(places_of(problem, problem.block));
  return std::clamp<std::int64_t>(std::llround(problem.density * double(places)), 0, places);
}

void add_plan(const planner::PlanCost& plan, std::int64_t tiles, Cost& cost) {
  cost.value = double(plan.cycles.value);
  cost.tiles = tiles;
  cost.temporary = plan.temp;
}

}  // namespace

planner::StaticPlanner& DrawnPatterns::drawn(const Problem& problem, std::int64_t blocks) {
  const Dims size = problem.size_in_blocks();
  const auto found = std::ranges::find_if(drawn_, [&](const Drawn& d) {
    return d.pattern.rows == size.x && d.pattern.cols == size.y &&
           d.pattern.block == problem.block && d.pattern.blocks() == blocks;
  });
  if (found != drawn_.end()) {
    drawn_.splice(drawn_.begin(), drawn_, found);
    return drawn_.front().planner;
  }
  std::int64_t kept = blocks;
  for (const Drawn& d : drawn_) kept += d.pattern.blocks();
  for (; kept > kMostStaticBlocks && !drawn_.empty(); drawn_.pop_back())
    kept -= drawn_.back().pattern.blocks();
  // Moving the matrix does not move its arrays.
  sparse::Csr<char> pattern = drawn_pattern(problem, blocks);
  planner::StaticPlanner planner(block_pattern(pattern));
  drawn_.push_front({std::move(pattern), std::move(planner)});
  return drawn_.front().planner;
}

Cost StaticModel::sparse(const Form& form) {
  Cost cost{.block = form.block, .density = form.density};
  Problem asked = problem(form);
  if (!codelets::has_static_kernel(form.block)) {
    cost.note = "no static kernel for these blocks";
    return cost;
  }
  if (form.pattern != nullptr) {
    const sparse::Csr<double> blocks = in_whole_blocks(*form.pattern, form.block);
    cost.blocks = blocks.blocks();
    cost.density = asked.density = double(cost.blocks) / places_of(asked, form.block);
    const auto result =
        planner::plan_static(with_static_sums(asked), block_pattern(blocks), machine_, options_);
    cost.note = result.reason;
    if (result.plan) add_plan(result.plan->cost, result.plan->tiles_used(), cost);
    return cost;
  }
  const std::int64_t blocks = drawn_blocks(asked);
  if (blocks > kMostStaticBlocks) {
    cost.note =
        fmt::format("no static plan: {} blocks; {} are planned at most", blocks, kMostStaticBlocks);
    return cost;
  }
  const auto result =
      patterns_->drawn(asked, blocks).quick_cost(with_static_sums(asked), machine_, options_);
  cost.note = result.reason;
  if (result.cost) add_plan(*result.cost, result.tiles, cost);
  return cost;
}

Cost StaticModel::dense(std::int64_t batch) {
  return PlannedModel(layer(), machine_,
                      {.available_memory_proportion = options_.available_memory_proportion})
      .dense(batch);
}

Look StaticModel::look(const Form& form, double limit) {
  const Problem asked = with_static_sums(problem(form));
  if (!codelets::has_static_kernel(form.block)) return {};
  const std::int64_t blocks = drawn_blocks(asked);
  if (blocks > kMostStaticBlocks) return {};
  const auto floor = double(planner::static_floor(asked, machine_, blocks).value);
  if (floor >= limit) return {.cost = {.value = floor}};
  return CostModel::look(form, limit);
}

}  // namespace tessera::study
