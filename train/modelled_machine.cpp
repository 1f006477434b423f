#include "tessera/train/modelled_machine.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>
#include <vector>

#include "tessera/planner/planner.hpp"
#include "tessera/runtime/fully_connected.hpp"

namespace tessera::train {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

// Layers are made again with every new pattern, so plans are kept.
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
  std::vector<double> making = {};  // seconds, by layer made
};

ModelledMachine::ModelledMachine(const std::string& name_or_path)
    : state_(std::make_shared<State>(
          State{device::load_machine(name_or_path), device::load_host_link(name_or_path)})) {}

const device::Machine& ModelledMachine::machine() const { return state_->machine; }
const device::HostLink& ModelledMachine::link() const { return state_->link; }

MakeLayer<MachineLayer> ModelledMachine::layers(Executor& executor) const {
  return [state = state_, &executor](const Problem& problem) {
    const planner::Plan& plan = state->plan(problem);
    const auto start = std::chrono::steady_clock::now();
    MachineLayer layer({problem, plan, state->machine, device::ExchangeMode::Share, executor},
                       executor);
    layer.search_on(problem, state->machine);
    state->making.push_back(seconds_since(start));
    return layer;
  };
}

double ModelledMachine::seconds_of_last(std::int64_t layers) const {
  const auto& making = state_->making;
  const auto count = std::min(layers, std::int64_t(making.size()));
  return std::accumulate(making.end() - count, making.end(), 0.0);
}

}  // namespace tessera::train
