#include <fmt/format.h>

#include <algorithm>

#include "tessera/base/error.hpp"
#include "tessera/json/reader.hpp"
#include "tessera/planner/plan_json.hpp"
#include "tessera/pod/internal/pod_cost.hpp"
#include "tessera/pod/pod_plan.hpp"

namespace tessera::pod {
namespace {

using Json = json::Value;
using planner::json_of;

// The version of the JSON below. It is raised with every change after which a reader of the old
// form would misread the new one.
constexpr std::int64_t kVersion = 2;
constexpr json::WholeRange kSerialParts{1, 2147483647};

std::string order_text(const std::array<Axis, 3>& order) {
  std::string text;
  for (const Axis axis : order) text += to_string(axis);
  return text;
}

Json collectives_json(const PodPass& pass, When when) {
  Json array = json::List();
  for (const PlannedCollective& c : pass.collectives) {
    if (c.when != when) continue;
    Json levels = json::List();
    for (const collectives::LevelPart& level : c.levels)
      levels.push_back(
          {{"members", level.members}, {"algorithm", collectives::to_string(level.algorithm)}});
    array.push_back({{"operation", collectives::to_string(c.operation)},
                     {"operand", to_string(c.operand)},
                     {"axis", to_string(c.axis)},
                     {"levels", std::move(levels)},
                     {"elements", c.elements},
                     {"seconds", c.seconds},
                     {"level_bytes", c.level_bytes}});
  }
  return array;
}

// All that follows from the grid and the plans of the devices.
Json cost_json(const PodPlan& plan) {
  Json passes = json::List();
  for (const PodPass& pass : plan.passes)
    passes.push_back({{"pass", to_string(pass.pass)},
                      {"cycles", pass.cycles.value},
                      {"add_cycles", pass.add_cycles.value},
                      {"before", collectives_json(pass, When::Before)},
                      {"after", collectives_json(pass, When::After)},
                      {"once", collectives_json(pass, When::Once)},
                      {"device_seconds", pass.device_seconds},
                      {"collective_seconds", pass.collective_seconds},
                      {"barrier_seconds", pass.barrier_seconds}});
  return {{"seconds", plan.seconds()},
          {"device_seconds", plan.device_seconds()},
          {"collective_seconds", plan.collective_seconds()},
          {"buffer_bytes", plan.buffer.value},
          {"passes", std::move(passes)}};
}

LevelCut read_cut(const json::Value& value, json::Place place) {
  json::ObjectReader fields(value, std::move(place));
  LevelCut cut;
  cut.parts = planner::read_dims(fields.at("parts"), fields.place().member("parts"));
  json::Names<std::array<Axis, 3>> names;
  std::array<Axis, 3> order = {Axis::X, Axis::Y, Axis::Z};
  do names.emplace_back(order, order_text(order));
  while (std::ranges::next_permutation(order).found);
  fields("order", cut.order, names);
  fields.finish();
  return cut;
}

// Returns the options of the pod's plan, from those of a device of a grid with these parts.
planner::Options options_of_pod(planner::Options device, const Dims& parts,
                                std::string_view where) {
  const std::int64_t patterns = parts.g * parts.x * parts.y;
  if (device.pattern_count % patterns != 0)
    throw Error(ErrorCode::BadInput,
                fmt::format("{}: options.patternCount is {}; it must be a multiple of {}, the "
                            "parts of R that the grid has",
                            where, device.pattern_count, patterns));
  device.pattern_count /= patterns;
  return device;
}

// The plans of all devices must be for the parts that the grid has.
void read_shapes(const json::List& list, std::string_view where, PodPlan& plan) {
  plan.shapes = internal::shapes_of(plan.problem, plan.grid.parts(), plan.serial_parts);
  if (list.size() != plan.shapes.size())
    throw Error(ErrorCode::BadInput,
                fmt::format("{}: shapes has {} items; the grid has devices of {} sizes", where,
                            list.size(), plan.shapes.size()));
  for (std::size_t i = 0; i < plan.shapes.size(); ++i) {
    const std::string name = fmt::format("{}: shapes[{}]", where, i);
    planner::PlannedLayer layer = planner::plan_from_json(list[i].dump(), name);
    json::check_as_input(where, [&] {
      planner::check_plan_is_for(layer, device_problem(plan.problem, plan.shapes[i].size),
                                 plan.pod.machine, name);
    });
    if (i == 0) plan.options = options_of_pod(layer.options, plan.grid.parts(), name);
    if (!(device_options(plan.options, plan.grid.parts()) == layer.options))
      throw Error(ErrorCode::BadInput,
                  fmt::format("{}: its options differ from those of shapes[0]", name));
    plan.shapes[i].plan = std::move(layer.plan);
  }
}

}  // namespace

std::string pod_plan_to_json(const PodPlan& plan) {
  Json document;
  document["schema_version"] = kVersion;
  document["problem"] = json_of(plan.problem);
  document["pod"] = json::parse_own(device::pod_to_json(plan.pod));
  document["grid"] = json::List();
  for (const LevelCut& level : plan.grid.levels)
    document["grid"].push_back(
        {{"parts", json_of(level.parts)}, {"order", order_text(level.order)}});
  document["serial_parts"] = plan.serial_parts;
  document["cost"] = cost_json(plan);
  document["shapes"] = json::List();
  const planner::Options options = device_options(plan.options, plan.grid.parts());
  for (const DeviceShape& shape : plan.shapes)
    document["shapes"].push_back(json::parse_own(planner::plan_to_json(
        {device_problem(plan.problem, shape.size), plan.pod.machine, options, shape.plan})));
  return document.dump(2) + "\n";
}

PodPlan pod_plan_from_json(std::string_view text, std::string_view where) {
  const json::Value document = json::parse(text, where);
  json::ObjectReader fields(document, {where, ""});
  std::int64_t version = 0;
  fields("schema_version", version, json::WholeRange{kVersion, kVersion});
  PodPlan plan;
  plan.problem = planner::read_problem(fields.at("problem"), fields.place().member("problem"));
  const json::Place grid = fields.place().member("grid");
  const json::List& levels = json::items_of(fields.at("grid"), grid);
  for (std::size_t l = 0; l < levels.size(); ++l)
    plan.grid.levels.push_back(read_cut(levels[l], grid.item(l)));
  fields("serial_parts", plan.serial_parts, kSerialParts);
  const json::Place shapes_place = fields.place().member("shapes");
  const json::List& shapes = json::items_of(fields.at("shapes"), shapes_place);
  const json::Value& pod = fields.at("pod");
  const json::Value& cost = fields.at("cost");
  fields.finish();
  plan.pod = device::pod_from_json(pod.dump(), fmt::format("{}: pod", where));
  json::check_as_input(where, [&] { internal::check_cut(plan); });
  read_shapes(shapes, where, plan);
  internal::LevelPrices prices(plan.pod);
  internal::add_costs(prices, plan);
  if (cost != cost_json(plan))
    throw Error(ErrorCode::BadInput,
                fmt::format("{}: cost is not that of the grid and of the devices' plans", where));
  return plan;
}

}  // namespace tessera::pod
