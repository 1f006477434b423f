#include "tessera/tools/options/layer_arguments.hpp"

#include <fmt/format.h>

#include "tessera/base/error.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/tools/options/inputs.hpp"
#include "tessera/tools/options/layer_keys.hpp"

namespace tessera::tools {

device::Machine with_tiles(device::Machine machine, std::int64_t tiles, const std::string& name) {
  if (tiles < 1 || tiles > machine.tiles)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{} is {}; on {} it must be in 1..{} (describe a larger machine in a "
                            "JSON file for --machine)",
                            name, tiles, machine.name, machine.tiles));
  machine.tiles = tiles;
  return machine;
}

Problem problem_of(const LayerArguments& a) {
  return {.size = {a.groups, a.output_size, a.input_size, a.batch_size},
          .block = a.block,
          .density = a.density,
          .data_type = a.data_type,
          .partials_type = a.partials_type,
          .grad_a = a.grad_a(),
          .grad_w = a.grad_w()};
}

bool is_host(const LayerArguments& a) { return a.machine == device::kHostMachine; }

device::Machine make_machine(const LayerArguments& a) {
  device::Machine machine = device::load_machine(a.machine);
  return a.tiles ? with_tiles(std::move(machine), *a.tiles, "--tiles-per-ipu") : machine;
}

namespace {

std::string json_text(const std::string& value) {
  return value.size() > 1 && value[0] == '@' ? load_text(value.substr(1)) : value;
}

}  // namespace

LayerArguments with_layer_keys(LayerArguments a) {
  a.matmul_options = json_text(a.matmul_options);
  const LayerKeys keys = take_layer_keys(a.matmul_options, "--matmul-options");
  a.phase = phase_of(keys.grad_a.value_or(a.grad_a()), keys.grad_w.value_or(a.grad_w()));
  a.partials_type = keys.partials_type.value_or(a.partials_type);
  return a;
}

planner::Options make_options(const LayerArguments& a, const planner::Options& base) {
  planner::Options options = base;
  if (!a.matmul_options.empty())
    options = planner::parse_options(json_text(a.matmul_options), "--matmul-options", options);
  if (!a.plan_constraints.empty())
    options.constraints =
        planner::parse_plan_constraints(json_text(a.plan_constraints), "--plan-constraints");
  return options;
}

}  // namespace tessera::tools
