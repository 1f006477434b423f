#include <algorithm>
#include <functional>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "tessera/layer/check_weights.hpp"
#include "tessera/pod/internal/device_set.hpp"
#include "tessera/pod/internal/pod_cost.hpp"
#include "tessera/pod/plan_pod.hpp"
#include "tessera/sparse/block_stats.hpp"

namespace tessera::pod {
namespace {

// Returns the counts of all groups of a part, on the diagonal of one matrix.
PatternStats stats_of(const internal::Cell& cell) {
  PatternStats all = sparse::stats_of_groups(cell.parts);
  if (cell.parts.size() > 1) all.before.clear();
  return all;
}

// So many parts of R are looked at for the plan of a shape, the fullest first.
constexpr std::size_t kMostParts = 64;

// Returns the parts that devices with this size have, the fullest first.
std::vector<const internal::Cell*> parts_of(const std::vector<internal::Cell>& cells,
                                            const PodPlan& plan, const Dims& size) {
  const Dims parts = plan.grid.parts();
  std::vector<const internal::Cell*> found;
  for (std::int64_t i = 0; i < std::ssize(cells); ++i)
    for (const std::int64_t z : {std::int64_t(0), parts.z - 1}) {
      const Dims at{i / parts.y / parts.x, i / parts.y % parts.x, i % parts.y, z};
      if (!(size_at(plan, at) == size)) continue;
      found.push_back(&cells[std::size_t(i)]);
      break;
    }
  std::ranges::stable_sort(found, std::greater(), &internal::Cell::values);
  if (found.size() > kMostParts) found.resize(kMostParts);
  return found;
}

bool has_more_room(const planner::Plan& a, const planner::Plan& b) {
  return std::tuple(a.blocks_per_bucket(), a.fwd_meta_words.value) >
         std::tuple(b.blocks_per_bucket(), b.fwd_meta_words.value);
}

// Returns the plan of the devices of a shape: the cut of the fullest of their parts, with buckets
// that have room for every other one, because a part with fewer non-zeros may have a fuller tile.
// Empty if the fullest part has no plan.
std::optional<planner::Plan> plan_shape(const PodPlan& plan, const Dims& size,
                                        const std::vector<const internal::Cell*>& parts,
                                        planner::PlanCache& cache) {
  const Problem problem = device_problem(plan.problem, size);
  const auto plan_for = [&](const internal::Cell& part, const planner::Options& options) {
    const PatternStats stats = stats_of(part);
    return cache.plan(problem, plan.pod.machine, options, &stats);
  };
  planner::PlanResult best = plan_for(*parts.front(), plan.options);
  if (!best.has_plan) return {};
  planner::Options same_cut = plan.options;
  const Dims cut = best.plan.partition;
  same_cut.constraints.x = cut.x;
  same_cut.constraints.y = cut.y;
  same_cut.constraints.z = cut.z;
  same_cut.constraints.use_dense = false;
  for (std::size_t i = 1; i < parts.size() && !best.plan.dense; ++i) {
    planner::PlanResult other = plan_for(*parts[i], same_cut);
    if (other.has_plan && has_more_room(other.plan, best.plan)) best = std::move(other);
  }
  return std::move(best.plan);
}

}  // namespace

PodPlan with_pattern(const PodPlan& plan, std::span<const sparse::CheckedCsr<float>> weights,
                     planner::PlanCache* cache) {
  layer::check_weights(plan.problem, weights);
  const std::vector<internal::Cell> cells =
      internal::cut_weights(plan.problem, plan.grid.parts(), weights);
  planner::PlanCache own;
  PodPlan result = plan;
  for (DeviceShape& shape : result.shapes)
    if (auto found = plan_shape(plan, shape.size, parts_of(cells, plan, shape.size),
                                cache != nullptr ? *cache : own))
      shape.plan = *std::move(found);
  internal::LevelPrices prices(result.pod);
  internal::add_costs(prices, result);
  return result;
}

}  // namespace tessera::pod
