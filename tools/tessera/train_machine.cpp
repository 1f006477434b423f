#include "tessera/tools/tessera/train_machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "tessera/planner/planner.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/tools/dense_verdict.hpp"

namespace tessera::tools {
namespace {

using Json = nlohmann::ordered_json;
using MachineNetwork = train::Network<train::MachineLayer>;

// The plans of the problems met so far. Layers are made again with every new pattern.
class PlannedProblems {
 public:
  explicit PlannedProblems(device::Machine machine) : machine_(std::move(machine)) {}

  const device::Machine& machine() const { return machine_; }
  const planner::Plan& plan(const Problem& problem) {
    const auto met = std::find_if(plans_.begin(), plans_.end(),
                                  [&](const auto& entry) { return entry.first == problem; });
    if (met != plans_.end()) return met->second;
    // Dense plans are what the step is compared with.
    return plans_
        .emplace_back(problem, planner::plan_or_throw(problem, machine_, planner::sparse_options()))
        .second;
  }

 private:
  device::Machine machine_;
  std::vector<std::pair<Problem, planner::Plan>> plans_;
};

void add_layer(const Problem& problem, const train::MachineLayer& layer, std::int64_t number,
               MachineStep& step) {
  const planner::DensePlanResult dense = report::dense_baseline(problem, step.machine, {});
  if (dense.plan)
    step.comparison.dense_name = report::sums_name(dense.plan->partials_type);
  else
    step.comparison.no_dense = fmt::format("layer {}: {}", number, dense.reason);
  for (const Pass pass : passes_of(problem)) {
    StepPass& made =
        step.passes.emplace_back(StepPass{number, pass, layer.last_run(pass).total(), {}});
    if (dense.plan) made.dense = dense.plan->find(pass)->cost.cycles();
  }
  step.pattern_bytes += layer.pattern_bytes();
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
  return sum;
}

train::MakeLayer<train::MachineLayer> machine_layers(const device::Machine& machine,
                                                     Executor& executor) {
  return [plans = std::make_shared<PlannedProblems>(machine), &executor](const Problem& problem) {
    return train::MachineLayer(
        {problem, plans->plan(problem), plans->machine(), device::ExchangeMode::Share, executor},
        executor);
  };
}

std::optional<MachineStep> machine_step(const MachineNetwork& network,
                                        const device::Machine& machine) {
  MachineStep step{.machine = machine, .passes = {}, .pattern_bytes = {}, .comparison = {}};
  for (std::int64_t i = 0; i < network.layers(); ++i) {
    const train::MachineLayer& layer = network.state(i).layer;
    if (layer.last_run(Pass::GradW).steps.empty()) return std::nullopt;
    add_layer(network.problems()[std::size_t(i)], layer, i + 1, step);
  }
  compare(step);
  return step;
}

std::string to_text(const MachineStep& step) {
  std::string text = fmt::format("\nthe last step on {} (modelled)\n{:<8}{:<8}{:>12}{:>14}\n",
                                 step.machine.name, "layer", "pass", "cycles", "dense plan");
  for (const StepPass& one : step.passes)
    text += fmt::format("{:<8}{:<8}{:>12}{:>14}\n", one.layer, tessera::to_string(one.pass),
                        one.cycles.value, cycles_text(one.dense));
  text += fmt::format(
      "step       {} cycles, {:.1f} us at {:.3f} GHz; biases, ReLU, loss and optimiser run on this "
      "computer and are not counted\n",
      step.cycles().value, double(step.cycles().value) / step.machine.clock_hz * 1e6,
      step.machine.clock_hz * 1e-9);
  text += fmt::format(
      "rewire     {} bytes for new patterns of all layers; a machine has no figure for the link to "
      "its host, so no time is stated\n",
      step.pattern_bytes.value);
  return text + verdict_line(step.comparison);
}

std::string to_json(const MachineStep& step) {
  Json passes = Json::array();
  for (const StepPass& one : step.passes)
    passes.push_back({{"layer", one.layer},
                      {"pass", tessera::to_string(one.pass)},
                      {"cycles", one.cycles.value},
                      {"dense_cycles", one.dense ? Json(one.dense->value) : Json()}});
  return Json({{"name", step.machine.name},
               {"passes", std::move(passes)},
               {"cycles", step.cycles().value},
               {"pattern_bytes", step.pattern_bytes.value},
               {"verdict", Json::parse(report::to_json(step.comparison))}})
      .dump();
}

}  // namespace tessera::tools
