#include "tessera/pod/with_pattern.hpp"

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>
#include <vector>

#include "tessera/layer/check_weights.hpp"
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

// Plans the devices of a shape for one of their parts of R.
class ShapePlanner {
 public:
  ShapePlanner(const PodPlan& plan, const Dims& size, planner::PlanCache* cache)
      : plan_(plan), problem_(device_problem(plan.problem, size)), cache_(cache) {}

  planner::PlanResult operator()(const internal::Cell& part,
                                 const planner::Options& options) const {
    const PatternStats stats = stats_of(part);
    const device::Machine& machine = plan_.pod.machine;
    return cache_ != nullptr ? cache_->plan(problem_, machine, options, &stats)
                             : planner::plan(problem_, machine, options, &stats);
  }

 private:
  const PodPlan& plan_;
  const Problem problem_;
  planner::PlanCache* cache_;
};

}  // namespace

PodPlan with_pattern(const PodPlan& plan, std::span<const sparse::CheckedCsr<float>> weights,
                     planner::PlanCache* cache) {
  layer::check_weights(plan.problem, weights);
  const std::vector<internal::Cell> cells =
      internal::cut_weights(plan.problem, plan.grid.parts(), weights);
  PodPlan result = plan;
  for (DeviceShape& shape : result.shapes) {
    const std::vector<const internal::Cell*> parts = parts_of(cells, plan, shape.size);
    const ShapePlanner plan_for(plan, shape.size, cache);
    planner::PlanResult best = plan_for(*parts.front(), plan.options);
    if (!best.has_plan) continue;
    // The cut of the fullest part, with buckets that have room for every other one: a part with
    // fewer non-zeros may have a fuller tile.
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
    shape.plan = std::move(best.plan);
  }
  internal::LevelPrices prices(result.pod);
  internal::add_costs(prices, result);
  return result;
}

}  // namespace tessera::pod
