#include "tessera/planner/plan_json.hpp"

#include "tessera/device/machine_json.hpp"
#include "tessera/planner/internal/check_plan.hpp"
#include "tessera/planner/internal/plan_fields.hpp"
#include "tessera/planner/internal/request_json.hpp"

namespace tessera::planner {
namespace {

using internal::Json;

// Files of other versions have other keys, so this comes first.
void read_version(internal::JsonReader& fields, std::string_view where) {
  std::int64_t version = 0;
  fields("schema_version", version, internal::kAnyWhole);
  if (version != kPlanSchemaVersion)
    internal::throw_bad(
        {where, "schema_version"}, fmt::format("{}", version),
        fmt::format("{}, the one this version reads; plan the layer again", kPlanSchemaVersion));
}

// Throws an error that names the first member that differs in two objects with the same keys, if
// there is one. `path` is the objects' own, such as "problem/size".
void refuse_difference(const Json& planned, const Json& asked, const std::string& path,
                       std::string_view where) {
  if (planned == asked) return;
  const auto* const members = std::get_if<json::Object>(&planned.data);
  const bool has_members = members != nullptr && std::holds_alternative<json::Object>(asked.data);
  for (const auto& [key, value] : has_members ? *members : json::Object())
    if (const Json* const other = json::find(asked, key))
      refuse_difference(value, *other, path + "/" + key, where);
  throw_invalid(fmt::format(
      "{}: the plan is for another {}: {} is {} there and {} here; make a plan for this one", where,
      path.substr(0, path.find('/')), path, planned.dump(), asked.dump()));
}

}  // namespace

json::Value json_of(const Dims& dims) { return internal::to_json_object(dims); }
json::Value json_of(const Problem& problem) { return internal::to_json_object(problem); }

Dims read_dims(const json::Value& value, const json::Place& place) {
  return internal::read_object<Dims>(value, place);
}

Problem read_problem(const json::Value& value, const json::Place& place) {
  return internal::read_object<Problem>(value, place);
}

std::string plan_to_json(const PlannedLayer& layer) {
  Json document;
  document["schema_version"] = kPlanSchemaVersion;
  document.update(internal::request_json(layer.problem, layer.machine, layer.options));
  document["plan"] = internal::to_json_object(layer.plan);
  return internal::to_text(document);
}

PlannedLayer plan_from_json(std::string_view text, std::string_view where) {
  const json::Value document = json::parse(text, where);
  PlannedLayer layer;
  internal::JsonReader fields(document, {where, ""});
  read_version(fields, where);
  layer.machine = device::machine_from_value(fields.at("machine"), where);
  fields("problem", layer.problem);
  fields("options", layer.options);
  fields("plan", layer.plan);
  fields.finish();
  json::check_as_input(where, [&] {
    check_problem(layer.problem);
    check_options(layer.options);
  });
  internal::check_plan(layer.plan, {layer.problem, layer.machine, layer.options}, where);
  return layer;
}

void check_plan_is_for(const PlannedLayer& layer, const Problem& problem,
                       const device::Machine& machine, std::string_view where) {
  using internal::to_json_object;
  refuse_difference(to_json_object(layer.problem), to_json_object(problem), "problem", where);
  refuse_difference(internal::machine_json(layer.machine), internal::machine_json(machine),
                    "machine", where);
}

}  // namespace tessera::planner
