#include "tessera/pod/plan_pod.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/layer/check_weights.hpp"
#include "tessera/planner/plan_bounds.hpp"
#include "tessera/pod/internal/device_set.hpp"
#include "tessera/pod/internal/grids.hpp"
#include "tessera/sparse/block_stats.hpp"

namespace tessera::pod {
namespace {

using internal::CheapestLayout;
using internal::GridFamily;
using internal::LevelPrices;

constexpr double kNever = std::numeric_limits<double>::infinity();

// Floors of devices by a few boxes of partitions put the grids in order, and by many boxes spare
// most of the others their plan.
constexpr std::int64_t kFewBoxes = 8, kManyBoxes = 400;

// A family of grids with a number of serial parts, on its way to a plan.
struct Candidate {
  std::size_t family = 0;
  std::int64_t serial_parts = 1;
  CheapestLayout layout;
  double floor = 0;  // seconds
  bool refined = false;
  bool next_is_open = false;  // the candidate with twice the serial parts was added

  // The queue has the least floor on top; among equal ones, the first family.
  bool operator<(const Candidate& other) const {
    return std::tie(other.floor, other.family, other.serial_parts) <
           std::tie(floor, family, serial_parts);
  }
};

class PodSearch {
 public:
  PodSearch(const Problem& problem, const device::Pod& pod, const planner::Options& options,
            const GridPins& pins, planner::PlanCache* cache)
      : problem_(problem),
        pod_(pod),
        options_(options),
        prices_(pod),
        cache_(cache != nullptr ? *cache : own_cache_),
        families_(internal::grid_families(problem, pod, pins)) {}

  PodResult run() {
    result_.grids = std::ssize(families_);
    for (std::size_t f = 0; f < families_.size(); ++f) push(f, 1);
    while (!open_.empty() && open_.top().floor < best_seconds_) {
      Candidate next = open_.top();
      open_.pop();
      if (!next.refined) {
        refine(std::move(next));
        continue;
      }
      consider(next);
      // Smaller parts of the batch take at least as long if they run by the same kind of plan, but
      // may have a faster one in the same memory.
      if (!next.next_is_open) push(next.family, 2 * next.serial_parts);
    }
    if (!result_.plan) result_.reason = no_plan();
    return std::move(result_);
  }

 private:
  std::int64_t most_serial_parts(std::size_t family) const {
    return internal::share_size(problem_, families_[family].parts, 1).z;
  }

  planner::PlanFloor floor_of_device(const Candidate& c, std::int64_t boxes) const {
    const Dims share = internal::share_size(problem_, families_[c.family].parts, c.serial_parts);
    return planner::plan_floor(device_problem(problem_, share), pod_.machine, options_for(c),
                               boxes);
  }

  double floor_of(const Candidate& c, const planner::PlanFloor& device) const {
    const double seconds = double(device.cycles.value) / pod_.machine.clock_hz;
    return c.layout.seconds + seconds * double(c.serial_parts);
  }

  // Adds the candidate of a family with so many serial parts. If its devices have no plan with
  // buckets, more parts may have one that is far faster, so these are added too.
  void push(std::size_t family, std::int64_t serial_parts) {
    for (; serial_parts <= most_serial_parts(family); serial_parts *= 2) {
      Candidate c{family, serial_parts, {}, 0, false, false};
      const planner::PlanFloor device = floor_of_device(c, kFewBoxes);
      if (device.possible) {
        c.layout = internal::cheapest_layout(prices_, problem_, families_[family], serial_parts);
        c.floor = floor_of(c, device);
        c.next_is_open = !device.with_buckets;
        open_.push(std::move(c));
      }
      if (device.with_buckets) return;
    }
  }

  void refine(Candidate c) {
    const planner::PlanFloor device = floor_of_device(c, kManyBoxes);
    const std::int64_t next = 2 * c.serial_parts;
    const std::size_t family = c.family;
    const bool opens_next = !device.with_buckets && !c.next_is_open;
    if (device.possible) {
      c.floor = std::max(c.floor, floor_of(c, device));
      c.refined = true;
      c.next_is_open |= opens_next;
      open_.push(std::move(c));
    }
    if (opens_next) push(family, next);
  }

  void consider(const Candidate& c) {
    PodPlan plan{problem_, pod_, options_, c.layout.grid, c.serial_parts, {}, {}, {}};
    plan.shapes = internal::shapes_of(problem_, plan.grid.parts(), c.serial_parts);
    for (DeviceShape& shape : plan.shapes) {
      planner::PlanResult found = plan_device(c, shape.size);
      if (!found.has_plan) return;
      shape.plan = std::move(found.plan);
    }
    internal::add_costs(prices_, plan);
    for (const DeviceShape& shape : plan.shapes)
      if (shape.plan.cost.resident + plan.buffer > pod_.machine.tile_memory) return;
    const double seconds = plan.seconds();
    if (seconds >= best_seconds_) return;
    best_seconds_ = seconds;
    result_.plan = std::move(plan);
  }

  // The cycles with which a device makes the grid as slow as the best one. One cycle is added,
  // so that rounding of seconds loses no grid.
  double cycles_left(const Candidate& c) const {
    if (best_seconds_ == kNever) return kNever;
    const double left = (best_seconds_ - c.layout.seconds) * pod_.machine.clock_hz;
    return std::max(1.0, std::ceil(left / double(c.serial_parts)) + 1);
  }

  planner::Options options_for(const Candidate& c) const {
    return device_options(options_, families_[c.family].parts);
  }

  planner::PlanResult plan_device(const Candidate& c, const Dims& size) {
    ++result_.device_plans;
    const Problem device = device_problem(problem_, size);
    const double limit = cycles_left(c);
    if (limit == kNever) return cache_.plan(device, pod_.machine, options_for(c));
    return planner::plan_below(device, pod_.machine, Cycles(std::int64_t(limit)), options_for(c));
  }

  std::string no_plan() const {
    if (families_.empty())
      return fmt::format(
          "no grid over {} devices has the pinned counts of parts; pin fewer of them",
          pod_.devices());
    return fmt::format(
        "no grid over {} devices fits: even with the batch in single columns, a device cannot hold "
        "its part; use more devices, a larger tile memory or a smaller layer",
        pod_.devices());
  }

  const Problem& problem_;
  const device::Pod& pod_;
  const planner::Options& options_;
  LevelPrices prices_;
  planner::PlanCache own_cache_;
  planner::PlanCache& cache_;
  std::vector<GridFamily> families_;
  std::priority_queue<Candidate> open_;
  double best_seconds_ = kNever;
  PodResult result_;
};

void check_pins(const GridPins& pins, std::int64_t devices) {
  const std::pair<const char*, std::optional<std::int64_t>> all[] = {
      {"g", pins.g}, {"x", pins.x}, {"y", pins.y}, {"z", pins.z}};
  for (const auto& [name, pin] : all)
    if (pin && (*pin < 1 || *pin > devices))
      throw_invalid(
          fmt::format("the pinned count of {} is {}; it must be in 1..{}, the devices of the pod",
                      name, *pin, devices));
}

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

PodResult plan_pod(const Problem& problem, const device::Pod& pod, const planner::Options& options,
                   const GridPins& pins, planner::PlanCache* cache) {
  check_problem(problem);
  device::check_pod(pod, pod.name);
  planner::check_options(options);
  check_pins(pins, pod.devices());
  return PodSearch(problem, pod, options, pins, cache).run();
}

PodPlan plan_pod_or_throw(const Problem& problem, const device::Pod& pod,
                          const planner::Options& options, const GridPins& pins,
                          planner::PlanCache* cache) {
  PodResult result = plan_pod(problem, pod, options, pins, cache);
  if (result.plan) return *std::move(result.plan);
  throw Error(ErrorCode::NoSolution, result.reason);
}

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
