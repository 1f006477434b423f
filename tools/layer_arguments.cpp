#include "tessera/tools/layer_arguments.hpp"

#include <fmt/format.h>

#include "tessera/base/error.hpp"

namespace tessera::tools {

device::Machine with_tiles(device::Machine machine, std::int64_t tiles, const std::string& name) {
  if (tiles < 1 || tiles > machine.tiles)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{} is {}; {} has 1..{} (describe a larger machine in a JSON file for "
                            "--machine)",
                            name, tiles, machine.name, machine.tiles));
  machine.tiles = tiles;
  return machine;
}

device::Machine make_machine(const LayerArguments& a) {
  device::Machine machine = device::load_machine(a.machine);
  return a.tiles ? with_tiles(std::move(machine), *a.tiles, "--tiles-per-ipu") : machine;
}

planner::Options make_options(const LayerArguments& a, const planner::Options& base) {
  planner::Options options = base;
  if (!a.matmul_options.empty())
    options = planner::parse_options(a.matmul_options, "--matmul-options", options);
  if (!a.plan_constraints.empty())
    options.constraints = planner::parse_plan_constraints(a.plan_constraints, "--plan-constraints");
  return options;
}

}  // namespace tessera::tools
