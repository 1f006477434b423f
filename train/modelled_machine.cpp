#include "tessera/train/modelled_machine.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "tessera/planner/planner.hpp"
#include "tessera/runtime/fully_connected.hpp"

namespace tessera::train {

// Layers of equal problems share a plan.
struct ModelledMachine::State {
  const planner::Plan& plan(const Problem& problem) {
    const auto met = std::find_if(plans.begin(), plans.end(),
                                  [&](const auto& entry) { return entry.first == problem; });
    if (met != plans.end()) return met->second;
    // Dense plans are what the step is compared with.
    return plans
        .emplace_back(problem, planner::plan_or_throw(problem, machine, planner::sparse_options()))
        .second;
  }

  device::Machine machine;
  device::HostLink link;
  std::vector<std::pair<Problem, planner::Plan>> plans = {};
};

ModelledMachine::ModelledMachine(const std::string& name_or_path)
    : state_(std::make_shared<State>(
          State{device::load_machine(name_or_path), device::load_host_link(name_or_path)})) {}

const device::Machine& ModelledMachine::machine() const { return state_->machine; }
const device::HostLink& ModelledMachine::link() const { return state_->link; }

MakeLayer ModelledMachine::layers(Executor& executor) const {
  return [state = state_, &executor](const Problem& problem) {
    return machine_layer(
        {problem, state->plan(problem), state->machine, device::ExchangeMode::Share, executor},
        state->machine, executor);
  };
}

}  // namespace tessera::train
