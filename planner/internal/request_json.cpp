#include "tessera/planner/internal/request_json.hpp"

#include "tessera/planner/internal/plan_fields.hpp"

namespace tessera::planner::internal {

Json machine_json(const device::Machine& machine) {
  Json json = json::parse_own(device::machine_to_json(machine));
  if (json["name"] != Json(machine.name))
    throw_invalid(fmt::format("machine name {} is not UTF-8, which JSON needs; rename the machine",
                              json["name"].dump()));
  return json;
}

Json request_json(const Problem& problem, const device::Machine& machine, const Options& options) {
  Json json;
  json["problem"] = to_json_object(problem);
  json["machine"] = machine_json(machine);
  json["options"] = to_json_object(options);
  return json;
}

}  // namespace tessera::planner::internal
