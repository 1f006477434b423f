#include <string>

#include "tessera/device/machine.hpp"
#include "tessera/device/pod.hpp"
#include "tessera/planner/internal/store.hpp"
#include "tessera/planner/options.hpp"
#include "tessera/planner/plan_cache.hpp"
#include "tessera/planner/plan_json.hpp"
#include "tessera/pod/pod_plan.hpp"
#include "tessera/tests/fuzz/input_bytes.hpp"
#include "tessera/tests/fuzz/targets.hpp"
#include "tessera/tests/support/process.hpp"
#include "tessera/tests/support/temporary_folder.hpp"

namespace tessera::fuzz {

void plan_json(Input input) {
  accepts([&] {
    const planner::PlannedLayer layer = planner::plan_from_json(InputBytes(input).rest(), "input");
    const std::string text = planner::plan_to_json(layer);
    require(planner::plan_from_json(text, "written") == layer, "a plan is read as it was written");
  });
}

void machine_json(Input input) {
  accepts([&] {
    const device::Machine machine = device::machine_from_json(InputBytes(input).rest(), "input");
    device::check_machine(machine, "input");
    require(device::machine_from_json(device::machine_to_json(machine), "written") == machine,
            "a machine is read as it was written");
  });
}

void pod_json(Input input) {
  accepts([&] {
    const device::Pod pod = device::pod_from_json(InputBytes(input).rest(), "input");
    device::check_pod(pod, "input");
    require(device::pod_from_json(device::pod_to_json(pod), "written") == pod,
            "a pod is read as it was written");
  });
}

void pod_plan_json(Input input) {
  accepts([&] {
    const pod::PodPlan plan = pod::pod_plan_from_json(InputBytes(input).rest(), "input");
    require(pod::pod_plan_from_json(pod::pod_plan_to_json(plan), "written") == plan,
            "the plan of a pod is read as it was written");
  });
}

void option_json(Input input) {
  accepts(
      [&] { planner::check_options(planner::parse_options(InputBytes(input).rest(), "input")); });
}

void constraint_json(Input input) {
  accepts([&] { planner::parse_plan_constraints(InputBytes(input).rest(), "input"); });
}

// A stored answer is replaced by the input, either the whole file or its text under a valid
// checksum. The cache must answer as if the file was not there, or refuse its content.
void cached_plan(Input input) {
  const Problem problem{.size = {1, 16, 16, 4}, .density = 0.5, .data_type = DataType::Float};
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = 2;
  static const test::TemporaryFolder folder;
  static const planner::PlanResult expected = planner::plan(problem, machine);
  static const std::string path = [&] {
    planner::PlanCache(folder.path().string()).plan(problem, machine);
    return std::filesystem::directory_iterator(folder.path())->path().string();
  }();
  static const std::string stored = test::read_file(path);
  static const std::string key = stored.substr(0, stored.find('\n'));

  InputBytes bytes(input);
  const bool is_valid = bytes.flag();
  std::string text(bytes.rest());
  if (is_valid && text.find('\n') == std::string::npos)
    planner::internal::store(folder.path().string(), key, text);
  else
    folder.write(std::filesystem::path(path).filename().string(), text);
  accepts([&] {
    const auto answer = planner::PlanCache(folder.path().string()).plan(problem, machine);
    if (!is_valid) require(answer.plan == expected.plan, "a damaged file is ignored");
  });
}

}  // namespace tessera::fuzz
