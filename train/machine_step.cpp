#include "tessera/train/machine_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tessera/base/int_math.hpp"
#include "tessera/base/printable.hpp"
#include "tessera/codelets/cost/network_cycles.hpp"
#include "tessera/json/value.hpp"

namespace tessera::train {
namespace {

using Json = json::Value;

void add_layer(const Problem& problem, const Network<>::LayerState& layer, std::int64_t number,
               MachineStep& step) {
  // The seconds of a pass are its cycles by the clock; no number of cycles is too large for this.
  const auto cycles_of = [&](Pass pass) {
    return Cycles(std::llround(layer.seconds[std::size_t(pass)] * step.machine.clock_hz));
  };
  const report::DenseBaseline dense = report::dense_baseline(problem, step.machine, {});
  if (dense.plan)
    step.comparison.dense_name = dense.name();
  else
    step.comparison.no_dense = fmt::format("layer {}: {}", number, dense.reason);
  for (const Pass pass : passes_of(problem)) {
    StepPass& made = step.passes.emplace_back(StepPass{number, pass, cycles_of(pass), {}});
    if (dense.plan) made.dense = dense.plan->cost.find(pass)->cycles();
  }
  step.pattern_bytes += layer.made.machine->pattern_bytes();
}

OptimiserStep optimiser_step(const Problem& problem, const MachineLayer& layer,
                             const Optimiser& optimiser, std::int64_t number,
                             const device::Machine& machine) {
  const auto cycles = [&](std::int64_t values) {
    return codelets::update_cycles(values, optimiser, problem.data_type, machine.workers) +
           machine.launch;
  };
  return {number, cycles(layer.values_per_tile()),
          cycles(ceil_div(problem.size.x * problem.size.y, machine.tiles))};
}

// Sums over the layers; there is a dense cost if every layer has one.
void compare(MachineStep& step) {
  report::DenseComparison& all = step.comparison;
  all.is_whole_step = true;
  for (const Pass pass : {Pass::Fwd, Pass::GradA, Pass::GradW}) {
    report::ComparedPass sum{.pass = pass, .sparse = 0};
    if (all.no_dense.empty()) sum.dense = 0;
    bool is_run = false;
    for (const StepPass& one : step.passes) {
      if (one.pass != pass) continue;
      is_run = true;
      *sum.sparse += double(one.cycles.value);
      if (sum.dense) *sum.dense += double(one.dense->value);
    }
    if (is_run) all.passes.push_back(sum);
  }
}

std::string cycles_text(const std::optional<Cycles>& cycles) {
  return cycles ? fmt::format("{}", cycles->value) : "no plan";
}

}  // namespace

Cycles MachineStep::cycles() const {
  Cycles sum;
  for (const StepPass& one : passes) sum += one.cycles;
  for (const OptimiserStep& one : optimisers) sum += one.cycles;
  return sum;
}

std::optional<double> MachineStep::dense_seconds() const {
  Cycles sum;
  for (const StepPass& one : passes) {
    if (!one.dense) return std::nullopt;
    sum += *one.dense;
  }
  for (const OptimiserStep& one : optimisers) sum += one.dense;
  return double(sum.value) / machine.clock_hz;
}

std::optional<MachineStep> machine_step(const Trainer& trainer, const ModelledMachine& on) {
  const Network<>& network = trainer.network();
  MachineStep step{.machine = on.machine(),
                   .link = on.link(),
                   .passes = {},
                   .optimisers = {},
                   .pattern_bytes = {},
                   .update = pattern_update(trainer, on),
                   .searches = {},
                   .comparison = {}};
  for (std::int64_t i = 0; i < network.layers(); ++i) {
    const MachineLayer& layer = *network.state(i).made.machine;
    if (network.state(i).seconds[std::size_t(Pass::GradW)] == 0) return std::nullopt;
    const Problem& problem = network.problems()[std::size_t(i)];
    add_layer(problem, network.state(i), i + 1, step);
    step.optimisers.push_back(
        optimiser_step(problem, layer, trainer.options().optimiser, i + 1, step.machine));
    const SearchFigures& all = layer.search_figures();
    if (all.searches > 0)
      step.searches.push_back({i + 1, Cycles(all.gradient.value / all.searches),
                               Cycles(all.selection.value / all.searches)});
  }
  compare(step);
  return step;
}

std::string to_text(const MachineStep& step) {
  std::string text =
      fmt::format("\nthe last step on {} (modelled)\n{:<8}{:<8}{:>12}{:>14}\n",
                  printable(step.machine.name), "layer", "pass", "cycles", "dense plan");
  for (const StepPass& one : step.passes)
    text += fmt::format("{:<8}{:<8}{:>12}{:>14}\n", one.layer, tessera::to_string(one.pass),
                        one.cycles.value, cycles_text(one.dense));
  for (const OptimiserStep& one : step.optimisers)
    text += fmt::format("{:<8}{:<8}{:>12}{:>14}\n", one.layer, "update", one.cycles.value,
                        one.dense.value);
  text += fmt::format(
      "step       {} cycles, {:.1f} us at {:.3f} GHz; biases, ReLU and loss run on this computer "
      "and are not counted\n",
      step.cycles().value, step.seconds() * 1e6, step.machine.clock_hz * 1e-9);
  text +=
      fmt::format("patterns   {} bytes for new patterns of all layers, {:.3f} ms\n",
                  step.pattern_bytes.value, 1e3 * step.link.transfer_seconds(step.pattern_bytes));
  if (step.update)
    text += to_text(*step.update, step.seconds(), step.dense_seconds(), step.link,
                    printable(step.machine.name));
  for (const LayerSearch& one : step.searches)
    text += fmt::format("  layer {}  {} cycles for its dense gradient, {} for its best places\n",
                        one.layer, one.gradient.value, one.selection.value);
  return text + report::verdict_line(step.comparison);
}

std::string to_json(const MachineStep& step) {
  Json passes = json::List();
  for (const StepPass& one : step.passes)
    passes.push_back({{"layer", one.layer},
                      {"pass", tessera::to_string(one.pass)},
                      {"cycles", one.cycles.value},
                      {"dense_cycles", one.dense ? Json(one.dense->value) : Json()}});
  Json optimisers = json::List();
  for (const OptimiserStep& one : step.optimisers)
    optimisers.push_back(
        {{"layer", one.layer}, {"cycles", one.cycles.value}, {"dense_cycles", one.dense.value}});
  Json searches = json::List();
  for (const LayerSearch& one : step.searches)
    searches.push_back({{"layer", one.layer},
                        {"dense_gradient_cycles", one.gradient.value},
                        {"selection_cycles", one.selection.value}});
  const Json update =
      step.update ? json::parse_own(to_json(*step.update, step.seconds(), step.dense_seconds()))
                  : Json();
  return Json({{"name", step.machine.name},
               {"passes", std::move(passes)},
               {"optimisers", std::move(optimisers)},
               {"cycles", step.cycles().value},
               {"seconds", step.seconds()},
               {"host_bytes_per_second", step.link.bytes_per_second},
               {"pattern_bytes", step.pattern_bytes.value},
               {"rewire", update},
               {"searches", std::move(searches)},
               {"verdict", json::parse_own(report::to_json(step.comparison))}})
      .dump();
}

}  // namespace tessera::train
