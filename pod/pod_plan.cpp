#include "tessera/pod/pod_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/base/error.hpp"
#include "tessera/pod/internal/pod_cost.hpp"

namespace tessera::pod {
namespace {

std::string algorithms_text(const PlannedCollective& c) {
  std::string text;
  for (std::size_t l = 0; l < c.levels.size(); ++l) {
    if (c.levels[l].members == 1) continue;
    text += fmt::format("{}{} over {}", text.empty() ? "" : ", ",
                        collectives::to_string(c.levels[l].algorithm), c.levels[l].members);
  }
  return text;
}

std::string collective_text(const PlannedCollective& c, std::int64_t runs) {
  return fmt::format("  {:<20} {:>11.2f} us  of {} along {}: {}\n",
                     collectives::to_string(c.operation), c.seconds * double(runs) * kMicroseconds,
                     to_string(c.operand), to_string(c.axis), algorithms_text(c));
}

std::string pass_text(const PodPass& pass) {
  const auto collectives = [&](bool are_before) {
    std::string lines;
    for (const PlannedCollective& c : pass.collectives)
      if ((c.when == When::Before) == are_before) lines += collective_text(c, pass.runs(c));
    return lines;
  };
  std::string text =
      fmt::format("{:<10} {:>23.2f} us\n", to_string(pass.pass), pass.seconds() * kMicroseconds);
  text += collectives(/*are_before=*/true);
  text += fmt::format("  {:<20} {:>11.2f} us  {} cycles", "devices",
                      pass.device_seconds * kMicroseconds, pass.cycles.value);
  if (pass.serial_parts > 1) text += fmt::format(", {} times", pass.serial_parts);
  text += "\n";
  text += collectives(/*are_before=*/false);
  if (pass.barrier_seconds > 0)
    text += fmt::format("  {:<20} {:>11.2f} us\n", "barrier", pass.barrier_seconds * kMicroseconds);
  return text;
}

}  // namespace

std::string_view to_string(Operand operand) {
  constexpr std::string_view kNames[] = {"S", "Q", "dS", "dQ", "dR"};
  return kNames[std::size_t(operand)];
}

double PodPlan::seconds() const { return internal::sum_of(passes, &PodPass::seconds); }

double PodPlan::device_seconds() const {
  return internal::sum_of(passes, &PodPass::device_seconds);
}

double PodPlan::collective_seconds() const {
  return internal::sum_of(passes, &PodPass::collective_seconds);
}

Dims size_at(const PodPlan& plan, const Dims& at) {
  return internal::share_size(plan.problem, plan.grid.parts(), plan.serial_parts, at);
}

const DeviceShape& shape_at(const PodPlan& plan, const Dims& at) {
  const Dims size = size_at(plan, at);
  const auto found = std::ranges::find(plan.shapes, size, &DeviceShape::size);
  if (found == plan.shapes.end())
    throw_invalid(fmt::format("a pod plan has no devices with a part of {}", to_string(size)));
  return *found;
}

Problem device_problem(const Problem& problem, const Dims& size) {
  Problem of_device = problem;
  of_device.size = size;
  return of_device;
}

planner::Options device_options(planner::Options options, const Dims& parts) {
  options.pattern_count *= parts.g * parts.x * parts.y;
  return options;
}

std::string to_string(const PodPlan& plan) {
  std::string text =
      fmt::format("layer      {}\npod        {}: {} devices of {} tiles\n", to_string(plan.problem),
                  plan.pod.name, plan.pod.devices(), plan.pod.machine.tiles);
  text += fmt::format("grid       {} of {}\n", to_string(plan.grid), plan.pod.devices());
  if (plan.serial_parts > 1)
    text += fmt::format("batch      in {} serial parts\n", plan.serial_parts);
  text += fmt::format("time       {:.2f} us: devices {:.2f}, collectives {:.2f}\n",
                      plan.seconds() * kMicroseconds, plan.device_seconds() * kMicroseconds,
                      plan.collective_seconds() * kMicroseconds);
  text += fmt::format("memory     {} bytes a tile for sums that arrive\n", plan.buffer.value);
  for (const DeviceShape& shape : plan.shapes)
    text += fmt::format("part       {} on {} devices: {} tiles, {} cycles, {} bytes resident\n",
                        to_string(shape.size), shape.devices, shape.plan.tiles_used(),
                        shape.plan.cost.cycles.value, shape.plan.cost.resident.value);
  for (const PodPass& pass : plan.passes) text += pass_text(pass);
  return text;
}

}  // namespace tessera::pod
