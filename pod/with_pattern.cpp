#include "tessera/pod/with_pattern.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "tessera/pod/internal/device_weights.hpp"
#include "tessera/pod/internal/pod_cost.hpp"
#include "tessera/sparse/convert.hpp"

namespace tessera::pod {
namespace {

// Returns the counts of all groups of a part, on the diagonal of one matrix.
PatternStats stats_of(const internal::Cell& cell) {
  PatternStats all = sparse::pattern_stats(*cell.parts.front());
  if (cell.parts.size() == 1) return all;
  all.before.clear();
  for (std::size_t g = 1; g < cell.parts.size(); ++g) {
    const PatternStats next = sparse::pattern_stats(*cell.parts[g]);
    all.row_counts.insert(all.row_counts.end(), next.row_counts.begin(), next.row_counts.end());
    all.col_counts.insert(all.col_counts.end(), next.col_counts.begin(), next.col_counts.end());
  }
  return all;
}

// Returns the fullest of the parts that devices with this size have.
const internal::Cell* fullest(const std::vector<internal::Cell>& cells, const PodPlan& plan,
                              const Dims& size) {
  const Dims parts = plan.grid.parts();
  const internal::Cell* best = nullptr;
  for (std::size_t c = 0; c < cells.size(); ++c)
    for (const std::int64_t z : {std::int64_t(0), parts.z - 1}) {
      const std::int64_t i = std::int64_t(c);
      const Dims at{i / parts.y / parts.x, i / parts.y % parts.x, i % parts.y, z};
      if (!(size_at(plan, at) == size)) continue;
      if (best == nullptr || cells[c].values() > best->values()) best = &cells[c];
    }
  return best;
}

}  // namespace

PodPlan with_pattern(const PodPlan& plan, std::span<const sparse::CheckedCsr<float>> weights,
                     planner::PlanCache* cache) {
  internal::check_weights(plan.problem, weights);
  const std::vector<internal::Cell> cells =
      internal::cut_weights(plan.problem, plan.grid.parts(), weights);
  PodPlan result = plan;
  for (DeviceShape& shape : result.shapes) {
    const internal::Cell* cell = fullest(cells, plan, shape.size);
    const PatternStats stats = stats_of(*cell);
    const Problem problem = device_problem(plan.problem, shape.size);
    planner::PlanResult found =
        cache != nullptr ? cache->plan(problem, plan.pod.machine, plan.options, &stats)
                         : planner::plan(problem, plan.pod.machine, plan.options, &stats);
    if (found.has_plan) shape.plan = std::move(found.plan);
  }
  internal::LevelPrices prices(result.pod);
  internal::add_costs(prices, result);
  return result;
}

}  // namespace tessera::pod
