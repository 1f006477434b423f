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

// Returns the bytes of a member's part of a collective on a level.
double part_bytes(const PodGrid& grid, std::size_t level, const PlannedCollective& collective,
                  DataType type) {
  auto part = double(collective.elements * bytes_of(type));
  for (std::size_t l = 0; l <= level; ++l)
    part /= double(along(grid.levels[l].parts, collective.axis));
  return part;
}

// Returns the non-zeros that a device with a share of this size has on average.
std::int64_t expected_nonzeros(const Problem& problem, const Dims& share) {
  const Dims whole = device_problem(problem, share).size_in_blocks();
  return std::llround(problem.density * double(whole.g) * double(whole.x) * double(whole.y));
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
  const Dims blocks = blocks_of(problem);
  return is_share_count(blocks.g, parts.g) && is_share_count(blocks.x, parts.x) &&
         is_share_count(blocks.y, parts.y) && is_share_count(blocks.z, parts.z);
}

Shares shares_at(const Problem& problem, const Dims& parts, const Dims& at) {
  return {share_of(problem.size.g, 1, parts.g, at.g),
          share_of(problem.size.x, problem.block.rows, parts.x, at.x),
          share_of(problem.size.y, problem.block.cols, parts.y, at.y),
          share_of(problem.size.z, 1, parts.z, at.z)};
}

Dims share_size(const Problem& problem, const Dims& parts, std::int64_t serial_parts,
                const Dims& at) {
  return ceil_div(shares_at(problem, parts, at).size(), {1, 1, 1, serial_parts});
}

Dims blocks_of(const Problem& problem) {
  return ceil_div(problem.size, {1, problem.block.rows, problem.block.cols, 1});
}

void check_cut(const PodPlan& plan) {
  check_problem(plan.problem);
  device::check_pod(plan.pod, plan.pod.name);
  check_grid(plan.grid, plan.pod);
  if (plan.serial_parts < 1 || !suits(plan.problem, plan.grid.parts()) ||
      plan.serial_parts > share_size(plan.problem, plan.grid.parts(), 1).z)
    throw_invalid(fmt::format("the grid {} with {} serial parts leaves a share of {} empty",
                              to_string(plan.grid), plan.serial_parts, to_string(plan.problem)));
}

std::vector<PlannedCollective> collectives_of(const Problem& problem, Pass pass, const Dims& parts,
                                              std::int64_t serial_parts,
                                              std::optional<std::int64_t> nonzeros) {
  const Dims share = share_size(problem, parts, serial_parts);
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
      add(Operation::AllReduce, Operand::Gradient, Axis::Z,
          nonzeros.value_or(expected_nonzeros(problem, share)), When::Once);
      break;
  }
  return all;
}

const std::vector<LevelCost>& LevelPrices::costs(std::size_t level, const LevelCut& cut,
                                                 Axis axis) {
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

LevelPrice LevelPrices::price(const PodGrid& grid, std::size_t level, const PlannedCollective& c,
                              double part, const LevelCost& cost) const {
  const Dims& parts = grid.levels[level].parts;
  const bool shared = shares_links(pod_.levels[level].kind);
  const double priced = double(shared ? parts.product() : along(parts, c.axis));
  const double runs = runs_of_a_gather(c.operation);
  return {cost.algorithm, cost.seconds(pod_.levels[level], part) * runs,
          cost.sent * part * double(grid.devices()) / priced * runs,
          has_buffer(c.operation) ? cost.held * part : 0};
}

std::vector<LevelPrice> LevelPrices::all(const PodGrid& grid, std::size_t level,
                                         const PlannedCollective& c, DataType type) {
  const double part = part_bytes(grid, level, c, type);
  std::vector<LevelPrice> prices;
  for (const LevelCost& cost : costs(level, grid.levels[level], c.axis))
    prices.push_back(price(grid, level, c, part, cost));
  return prices;
}

// The search asks for it most of all, so it makes no list.
LevelPrice LevelPrices::least(const PodGrid& grid, std::size_t level, const PlannedCollective& c,
                              DataType type) {
  const double part = part_bytes(grid, level, c, type);
  const auto seconds = [&](const LevelCost& cost) {
    return cost.seconds(pod_.levels[level], part);
  };
  return price(grid, level, c, part,
               *std::ranges::min_element(costs(level, grid.levels[level], c.axis), {}, seconds));
}

double add_prices(LevelPrices& prices, const PodGrid& grid, DataType type, PlannedCollective& c) {
  double buffer = 0;
  for (std::size_t l = 0; l < grid.levels.size(); ++l) {
    const std::int64_t members = along(grid.levels[l].parts, c.axis);
    const LevelPrice price = members > 1 ? prices.least(grid, l, c, type) : LevelPrice();
    c.levels.push_back({std::int32_t(members), price.algorithm});
    c.level_bytes.push_back(price.link_bytes);
    c.seconds += price.seconds;
    buffer = std::max(buffer, price.buffer);
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
    const Dims size = share_size(problem, parts, serial_parts, at);
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
    row.collectives = collectives_of(problem, pass, parts, plan.serial_parts);
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
