#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "tessera/planner/planner.hpp"
#include "tessera/pod/internal/grids.hpp"
#include "tessera/tests/pod/pod_case.hpp"

// Random layers and pods, and the search through all their grids that plan_pod is compared with.
namespace tessera::pod {

// The layers and pods of the comparison with all grids.
struct Drawn {
  Problem problem;
  device::Pod pod;
  planner::Options options;
};

inline Drawn draw(std::uint64_t seed, std::int64_t inner = 3, std::int64_t outer = 4) {
  Random random(seed);
  const auto pick = [&random](auto... values) {
    const std::common_type_t<decltype(values)...> all[] = {values...};
    return all[random.below(sizeof...(values))];
  };
  const std::int64_t side = pick(1, 1, 4, 16);
  const Dims size{pick(1, 1, 1, 2), side * (4 + random.below(40)), side * (4 + random.below(40)),
                  4 + random.below(300)};
  // One draw a statement: the order in which arguments are evaluated differs between compilers.
  const DataType data_type = pick(DataType::Half, DataType::Float);
  const double density = pick(0.05, 0.2, 0.5);
  Problem problem = make_problem(size, {side, side}, density, data_type);
  problem.grad_a = random.below(3) > 0;
  problem.grad_w = random.below(2) > 0;
  const std::int64_t outer_devices = 1 + random.below(outer);
  const std::int64_t inner_devices = 1 + random.below(inner);
  const std::int64_t memory = pick(638976, 30000);
  const std::int64_t tiles = 4 + random.below(20);
  Drawn drawn{problem, small_pod(small_machine(tiles, memory), inner_devices, outer_devices), {}};
  // Links from very slow to very fast, so that every kind of grid wins somewhere.
  const double speed = pick(0.05, 1.0, 20.0, 1000.0);
  for (device::PodLevel& level : drawn.pod.levels) {
    level.bytes_per_second *= speed;
    level.step_seconds /= speed;
  }
  return drawn;
}

// The least time of all grids, layouts, orders and serial parts, each planned without any limit.
inline double least_seconds(const Drawn& drawn) {
  std::map<std::pair<std::int64_t, std::vector<std::int64_t>>, std::optional<planner::Plan>> plans;
  const auto plan_of = [&](const Dims& size, const Dims& parts) -> std::optional<planner::Plan>& {
    const planner::Options options = device_options({}, parts);
    const auto [entry, is_new] =
        plans.try_emplace({size.g, {size.x, size.y, size.z, options.pattern_count}});
    if (is_new) {
      const auto found =
          planner::plan(device_problem(drawn.problem, size), drawn.pod.machine, options);
      if (found.has_plan) entry->second = found.plan;
    }
    return entry->second;
  };
  internal::LevelPrices prices(drawn.pod);
  double least = std::numeric_limits<double>::infinity();
  const auto consider = [&](const PodGrid& grid, std::int64_t serial_parts) {
    PodPlan plan{drawn.problem, drawn.pod, {}, grid, serial_parts, {}, {}, {}};
    plan.shapes = internal::shapes_of(drawn.problem, grid.parts(), serial_parts);
    for (DeviceShape& shape : plan.shapes) {
      const auto& device = plan_of(shape.size, grid.parts());
      if (!device) return;
      shape.plan = *device;
    }
    internal::add_costs(prices, plan);
    for (const DeviceShape& shape : plan.shapes)
      if (shape.plan.cost.resident + plan.buffer > drawn.pod.machine.tile_memory) return;
    least = std::min(least, plan.seconds());
  };
  const std::array<Axis, 3> orders[] = {{Axis::X, Axis::Y, Axis::Z}, {Axis::X, Axis::Z, Axis::Y},
                                        {Axis::Y, Axis::X, Axis::Z}, {Axis::Y, Axis::Z, Axis::X},
                                        {Axis::Z, Axis::X, Axis::Y}, {Axis::Z, Axis::Y, Axis::X}};
  for (const auto& family : internal::grid_families(drawn.problem, drawn.pod, {}))
    for (PodGrid grid : family.layouts)
      for (const auto& order : orders) {
        grid.levels[1].order = order;
        const std::int64_t most = internal::share_size(drawn.problem, family.parts, 1).z;
        for (std::int64_t parts = 1; parts <= most; parts *= 2) consider(grid, parts);
      }
  return least;
}

}  // namespace tessera::pod
