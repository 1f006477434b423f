#include "tessera/report/network_report.hpp"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "tessera/base/printable.hpp"
#include "tessera/report/document.hpp"

namespace tessera::report {
namespace {

using Json = nlohmann::ordered_json;
using planner::NetworkWork;

std::vector<NetworkReport::Line> lines_of(const planner::NetworkPlan& plan,
                                          const runtime::Network& network,
                                          const runtime::NetworkCost& cost) {
  // Work that serves all layers comes last.
  std::map<std::tuple<bool, std::int64_t, NetworkWork>, NetworkReport::Line> lines;
  const auto line = [&](NetworkWork work, std::int64_t layer) -> NetworkReport::Line& {
    NetworkReport::Line& found = lines[{serves_all(work), layer, work}];
    found.work = work;
    found.layer = layer;
    return found;
  };
  for (const planner::WorkCost& work : network.planned_work(plan))
    line(work.work, work.layer).planned += work.cycles;
  for (std::size_t i = 0; i < network.parts().size(); ++i) {
    const runtime::NetworkPart& part = network.parts()[i];
    if (part.work == NetworkWork::Parameters) continue;
    line(part.work, part.layer).cycles += cost.of(int(i));
    line(part.work, part.layer).moved += cost.moved(int(i));
  }
  std::vector<NetworkReport::Line> result;
  for (const auto& [key, value] : lines) result.push_back(value);
  return result;
}

// The layers as the file describes them, with the parts into which the plan cuts each.
Json layers_json(const NetworkReport& run) {
  Json layers = Json::array();
  for (std::size_t l = 0; l < run.spec.layers.size(); ++l) {
    const planner::NetworkLayer& layer = run.spec.layers[l];
    const planner::Plan& plan = run.plan.plans[l];
    const Dims& parts = plan.partition;
    layers.push_back({{"outputs", layer.outputs},
                      {"inputs", layer.inputs},
                      {"block_rows", layer.block.rows},
                      {"block_cols", layer.block.cols},
                      {"density", layer.density},
                      {"dense", layer.dense},
                      {"bias", layer.bias},
                      {"activation", codelets::to_string(layer.activation.kind)},
                      {"parts", {{"x", parts.x}, {"y", parts.y}, {"z", parts.z}}},
                      {"layouts", 1 + plan.backward.size()}});
  }
  return layers;
}

Cycles planned_cycles(const NetworkReport& run) {
  Cycles cycles;
  for (const NetworkReport::Line& line : run.lines) cycles += line.planned;
  return cycles;
}

}  // namespace

std::string losses_text(const std::vector<float>& losses) {
  if (losses.empty()) return {};
  std::string text = fmt::format("loss       {:.4f}", losses.front());
  if (losses.size() > 1)
    text +=
        fmt::format(" before the first step, {:.4f} before step {}", losses.back(), losses.size());
  return text + "\n";
}

std::string layer_text(NetworkWork work, std::int64_t layer) {
  return serves_all(work) ? "all" : fmt::format("{}", layer + 1);
}

NetworkReport network_report(const runtime::Network& network, const planner::NetworkPlan& plan,
                             const runtime::NetworkCost& cost, const device::Machine& machine,
                             std::vector<float> losses) {
  return {.spec = network.spec(),
          .plan = plan,
          .machine = machine,
          .lines = lines_of(plan, network, cost),
          .dense = compare_with_dense(network, cost, machine),
          .cycles = cost.ledger.total(),
          .moved = cost.ledger.moved(),
          .high_water = network.high_water(),
          .losses = std::move(losses)};
}

std::string to_csv(const NetworkReport& run) {
  std::string text = "layer,work,planned_cycles,cycles,moved_bytes\n";
  for (const NetworkReport::Line& line : run.lines)
    text += fmt::format("{},{},{},{},{}\n", layer_text(line.work, line.layer), to_string(line.work),
                        line.planned.value, line.cycles.value, line.moved.value);
  return text;
}

std::string to_json(const NetworkReport& run, const std::string& more) {
  Json work = Json::array(), losses = run.losses;
  for (const NetworkReport::Line& line : run.lines)
    work.push_back({{"layer", serves_all(line.work) ? Json("all") : Json(line.layer + 1)},
                    {"work", to_string(line.work)},
                    {"planned_cycles", line.planned.value},
                    {"cycles", line.cycles.value},
                    {"moved_bytes", line.moved.value}});
  Json json = Json::parse(document_head("network", /*is_complete=*/true));
  json.update(Json{{"machine", run.machine.name},
                   {"tiles", run.machine.tiles},
                   {"layers", run.spec.layers.size()},
                   {"batch", run.spec.batch},
                   {"data_type", tessera::to_string(run.spec.data_type)},
                   {"loss", run.spec.loss ? Json(codelets::to_string(*run.spec.loss)) : Json()},
                   {"planned_cycles", planned_cycles(run).value},
                   {"planned_without_weights_cycles", run.plan.cycles.value},
                   {"cycles", run.cycles.value},
                   {"microseconds", run.microseconds()},
                   {"moved_bytes", run.moved.value},
                   {"layer_by_layer_cycles", run.plan.layer_by_layer.value},
                   {"cheapest_plans_cycles", run.plan.cheapest_of_each.value},
                   {"layer_by_layer_fits", run.plan.layer_by_layer_fits},
                   {"planned_tile_bytes", run.plan.memory.value},
                   {"tile_bytes", run.high_water.value},
                   {"tile_memory", run.machine.tile_memory.value},
                   {"losses", std::move(losses)},
                   {"work", std::move(work)},
                   {"layer_list", layers_json(run)},
                   {"verdict", Json::parse(run.dense.to_json())}});
  json.update(Json::parse(more));
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string to_text(const NetworkReport& run) {
  std::string text =
      fmt::format("{} layers, batch {}, {}, {} on {}\n\n{:<8}{:<12}{:>14}{:>14}{:>10}{:>16}\n",
                  run.spec.layers.size(), run.spec.batch, tessera::to_string(run.spec.data_type),
                  run.spec.loss ? "one training step" : "forward", printable(run.machine.name),
                  "layer", "work", "planned", "cycles", "share", "bytes moved");
  const double total = double(run.cycles.value);
  for (const NetworkReport::Line& line : run.lines)
    text +=
        fmt::format("{:<8}{:<12}{:>14}{:>14}{:>9.1f}%{:>16}\n", layer_text(line.work, line.layer),
                    to_string(line.work), line.planned.value, line.cycles.value,
                    100 * double(line.cycles.value) / total, line.moved.value);
  text += fmt::format("{:<8}{:<12}{:>14}{:>14}{:>10}{:>16}\n\n", "sum", "",
                      planned_cycles(run).value, run.cycles.value, "", run.moved.value);
  text += fmt::format("time       {:.1f} us at {:.3f} GHz (modelled)\n", run.microseconds(),
                      run.machine.clock_hz * 1e-9);
  text += fmt::format("memory     {} of {} bytes on the fullest tile\n", run.high_water.value,
                      run.machine.tile_memory.value);
  const std::string verdict = fmt::format("verdict    {}\n", run.dense.to_text());
  return text + losses_text(run.losses) + verdict;
}

}  // namespace tessera::report
