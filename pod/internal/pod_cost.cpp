#include "tessera/pod/internal/pod_cost.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/codelets/cost/vector_cycles.hpp"

namespace tessera::pod::internal {
namespace {

using collectives::LevelCost;
using collectives::LevelPart;
using collectives::Operation;

// The share of one dimension without a smaller count that has it.
bool has_least_count(std::int64_t size, std::int64_t grain, std::int64_t parts) {
  const std::int64_t grains = ceil_div(size, grain);
  return parts <= grains && ceil_div(grains, ceil_div(grains, parts)) == parts;
}

// Devices on a ring share links with those between them; on other levels each has its own.
bool shares_links(device::LevelKind kind) { return kind == device::LevelKind::Ring; }

// The distance of neighbours along an axis on a level.
std::int64_t stride_of(const LevelCut& cut, Axis axis) {
  std::int64_t stride = 1;
  for (const Axis inner : cut.order) {
    if (inner == axis) break;
    stride *= along(cut.parts, inner);
  }
  return stride;
}

// An all-reduce is a sum and a gather.
double runs_of_a_gather(Operation operation) { return operation == Operation::AllReduce ? 2 : 1; }

bool has_buffer(Operation operation) {
  return operation == Operation::ReduceScatter || operation == Operation::AllReduce;
}

// The cycles in which a tile adds its gradients to those of the part before.
Cycles add_cycles(const PodPlan& plan, const planner::Plan& device, const Dims& size) {
  const std::int64_t all = expected_nonzeros(plan.problem, size);
  const std::int64_t of_a_tile = device.nonzeros_per_bucket > 0
                                     ? device.nonzeros_per_bucket
                                     : ceil_div(all, plan.pod.machine.tiles);
  constexpr std::int64_t kBoth = 2;
  return codelets::reduce_cycles(of_a_tile, kBoth, plan.problem.data_type, plan.problem.data_type,
                                 plan.pod.machine.workers);
}

}  // namespace

bool suits(const Problem& problem, const Dims& parts) {
  const Dims& size = problem.size;
  return has_least_count(size.g, 1, parts.g) &&
         has_least_count(size.x, problem.block.rows, parts.x) &&
         has_least_count(size.y, problem.block.cols, parts.y) &&
         has_least_count(size.z, 1, parts.z);
}

Shares shares_at(const Problem& problem, const Dims& parts, const Dims& at) {
  return {share_of(problem.size.g, 1, parts.g, at.g),
          share_of(problem.size.x, problem.block.rows, parts.x, at.x),
          share_of(problem.size.y, problem.block.cols, parts.y, at.y),
          share_of(problem.size.z, 1, parts.z, at.z)};
}

Dims largest_share(const Problem& problem, const Dims& parts, std::int64_t serial_parts) {
  Dims size = shares_at(problem, parts, {0, 0, 0, 0}).size();
  size.z = ceil_div(size.z, serial_parts);
  return size;
}

void check_cut(const PodPlan& plan) {
  check_problem(plan.problem);
  device::check_pod(plan.pod, plan.pod.name);
  check_grid(plan.grid, plan.pod);
  if (plan.serial_parts < 1 || !suits(plan.problem, plan.grid.parts()) ||
      plan.serial_parts > largest_share(plan.problem, plan.grid.parts(), 1).z)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("the grid {} with {} serial parts leaves a share of {} empty",
                            to_string(plan.grid), plan.serial_parts, to_string(plan.problem)));
}

std::int64_t expected_nonzeros(const Problem& problem, const Dims& share) {
  const Dims whole = device_problem(problem, share).size_in_blocks();
  return std::llround(problem.density * double(whole.g) * double(whole.x) * double(whole.y));
}

std::vector<PlannedCollective> collectives_of(const Problem& problem, Pass pass, const Dims& parts,
                                              std::int64_t serial_parts, const Dims& share,
                                              std::int64_t nonzeros) {
  const std::int64_t s = share.g * share.y * share.z, q = share.g * share.x * share.z;
  std::vector<PlannedCollective> all;
  const auto add = [&](Operation operation, Operand operand, Axis axis, std::int64_t elements,
                       When when) {
    if (along(parts, axis) > 1)
      all.push_back({operation, operand, axis, when, {}, elements, 0, {}});
  };
  const bool keeps_slices = serial_parts == 1;
  switch (pass) {
    case Pass::Fwd:
      add(Operation::AllGather, Operand::S, Axis::X, s, When::Before);
      add(Operation::ReduceScatter, Operand::Q, Axis::Y, q, When::After);
      break;
    case Pass::GradA:
      add(Operation::AllGather, Operand::QGrad, Axis::Y, q, When::Before);
      add(Operation::ReduceScatter, Operand::SGrad, Axis::X, s, When::After);
      break;
    case Pass::GradW:
      if (!keeps_slices) add(Operation::AllGather, Operand::S, Axis::X, s, When::Before);
      if (!keeps_slices || !problem.grad_a)
        add(Operation::AllGather, Operand::QGrad, Axis::Y, q, When::Before);
      add(Operation::AllReduce, Operand::Gradient, Axis::Z, nonzeros, When::Once);
      break;
  }
  return all;
}

const std::vector<LevelCost>& LevelPrices::at(std::size_t level, const LevelCut& cut, Axis axis) {
  const device::PodLevel& links = pod_.levels[level];
  const std::int64_t members = along(cut.parts, axis);
  const bool shared = shares_links(links.kind);
  const std::int64_t stride = shared ? stride_of(cut, axis) : 1;
  const std::int64_t used = shared ? cut.parts.product() : members;
  const auto [entry, is_new] = known_.try_emplace({level, members, stride, used});
  if (is_new)
    entry->second = collectives::level_costs(
        links, {level, std::int32_t(members), std::int32_t(stride), std::int32_t(used)});
  return entry->second;
}

const LevelCost& LevelPrices::cheapest(std::size_t level, const LevelCut& cut, Axis axis,
                                       double part_bytes) {
  const std::vector<LevelCost>& costs = at(level, cut, axis);
  return *std::ranges::min_element(costs, {}, [&](const LevelCost& cost) {
    return cost.seconds(pod_.levels[level], part_bytes);
  });
}

double LevelPrices::seconds(std::size_t level, const LevelCost& cost, Operation operation,
                            double part_bytes) const {
  return cost.seconds(pod_.levels[level], part_bytes) * runs_of_a_gather(operation);
}

double part_bytes(const PodGrid& grid, std::size_t level, const PlannedCollective& collective,
                  DataType type) {
  auto part = double(collective.elements * bytes_of(type));
  for (std::size_t l = 0; l <= level; ++l)
    part /= double(along(grid.levels[l].parts, collective.axis));
  return part;
}

double add_prices(LevelPrices& prices, const PodGrid& grid, DataType type, PlannedCollective& c) {
  const double devices = double(grid.devices()), runs = runs_of_a_gather(c.operation);
  double buffer = 0;
  for (std::size_t l = 0; l < grid.levels.size(); ++l) {
    const LevelCut& cut = grid.levels[l];
    const std::int64_t members = along(cut.parts, c.axis);
    if (members == 1) {
      c.levels.push_back({1, collectives::Algorithm::OneWayRing});
      c.level_bytes.push_back(0);
      continue;
    }
    const double part = part_bytes(grid, l, c, type);
    const LevelCost& cost = prices.cheapest(l, cut, c.axis, part);
    const std::int64_t priced_devices =
        shares_links(prices.pod().levels[l].kind) ? cut.parts.product() : members;
    c.levels.push_back({std::int32_t(members), cost.algorithm});
    c.level_bytes.push_back(cost.sent * part * devices / double(priced_devices) * runs);
    c.seconds += prices.seconds(l, cost, c.operation, part);
    if (has_buffer(c.operation)) buffer = std::max(buffer, cost.held * part);
  }
  return buffer;
}

double barrier_seconds(const device::Pod& pod, const PodGrid& grid) {
  double seconds = 0;
  for (std::size_t l = 0; l < grid.levels.size(); ++l)
    if (grid.levels[l].parts.product() > 1) seconds += pod.levels[l].barrier_seconds;
  return seconds;
}

std::vector<DeviceShape> shapes_of(const Problem& problem, const Dims& parts,
                                   std::int64_t serial_parts) {
  std::vector<DeviceShape> shapes;
  // All shares of a dimension but its last one are equal: one bit says which of both is meant.
  for (unsigned last = 0; last < 1 << 4; ++last) {
    std::int64_t devices = 1;
    const auto place = [&](std::int64_t count, unsigned dimension) {
      const bool is_last = (last >> dimension & 1) != 0;
      devices *= is_last ? 1 : count - 1;
      return is_last ? count - 1 : 0;
    };
    const Dims at{place(parts.g, 3), place(parts.x, 2), place(parts.y, 1), place(parts.z, 0)};
    if (devices == 0) continue;
    Dims size = shares_at(problem, parts, at).size();
    size.z = ceil_div(size.z, serial_parts);
    const auto same = std::ranges::find(shapes, size, &DeviceShape::size);
    if (same != shapes.end())
      same->devices += devices;
    else
      shapes.push_back({size, devices, {}});
  }
  return shapes;
}

void add_costs(LevelPrices& prices, PodPlan& plan) {
  const Problem& problem = plan.problem;
  const Dims parts = plan.grid.parts();
  const Dims share = largest_share(problem, parts, plan.serial_parts);
  const std::int64_t nonzeros = expected_nonzeros(problem, share);
  const double clock = double(plan.pod.machine.clock_hz);
  double buffer = 0;
  plan.passes.clear();
  for (const Pass pass : passes_of(problem)) {
    PodPass& row = plan.passes.emplace_back();
    row.pass = pass;
    row.serial_parts = plan.serial_parts;
    for (const DeviceShape& shape : plan.shapes) {
      row.cycles = std::max(row.cycles, shape.plan.cost.find(pass)->cycles());
      if (pass == Pass::GradW && plan.serial_parts > 1)
        row.add_cycles = std::max(row.add_cycles, add_cycles(plan, shape.plan, shape.size));
    }
    row.collectives = collectives_of(problem, pass, parts, plan.serial_parts, share, nonzeros);
    for (PlannedCollective& c : row.collectives) {
      buffer = std::max(buffer, add_prices(prices, plan.grid, problem.data_type, c));
      row.collective_seconds += c.seconds * double(row.runs(c));
    }
    const double runs = double(plan.serial_parts);
    row.device_seconds =
        (double(row.cycles.value) * runs + double(row.add_cycles.value) * (runs - 1)) / clock;
    row.barrier_seconds = barrier_seconds(plan.pod, plan.grid);
  }
  plan.buffer = Bytes(std::int64_t(std::ceil(buffer / double(plan.pod.machine.tiles))));
}

}  // namespace tessera::pod::internal
