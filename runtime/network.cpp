#include "tessera/runtime/network.hpp"

#include <fmt/format.h>

#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/one_caller.hpp"
#include "tessera/runtime/internal/network_state.hpp"

namespace tessera::runtime {
namespace {

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorCode::InvalidArgument, "network: " + message);
}

void check_plan(std::size_t layer, const planner::Plan& plan) {
  const auto refuse_plan = [&](const char* reason, const char* remedy) {
    refuse(fmt::format("the plan of layer {} {}; plan it with {}", layer + 1, reason, remedy));
  };
  if (!plan.backward.empty()) refuse_plan("has two layouts", "perPassPlans false");
  if (plan.use_dense) refuse_plan("is dense", "planConstraints.useDense false");
  if (plan.operand_placement != Placement::AtHome)
    refuse_plan("spreads its operands", "operandPlacement \"at-home\"");
}

}  // namespace

std::string_view to_string(NetworkWork work) {
  switch (work) {
    case NetworkWork::Parameters:
      return "parameters";
    case NetworkWork::Fwd:
      return "Fwd";
    case NetworkWork::Activate:
      return "activate";
    case NetworkWork::HandOver:
      return "hand over";
    case NetworkWork::Loss:
      return "loss";
    case NetworkWork::Derivative:
      return "derivative";
    case NetworkWork::GradA:
      return "GradA";
    case NetworkWork::GradW:
      return "GradW";
    case NetworkWork::Update:
      return "update";
  }
  assertion_failed("every kind of work has a name", __FILE__, __LINE__);
}

std::vector<Problem> problems_of(const NetworkSpec& spec) {
  std::vector<Problem> problems;
  for (const NetworkLayer& layer : spec.layers)
    problems.push_back({.size = {1, layer.outputs, layer.inputs, spec.batch},
                        .block = layer.block,
                        .density = layer.density,
                        .data_type = spec.data_type,
                        .partials_type = spec.partials_type,
                        .grad_a = spec.loss.has_value() && !problems.empty(),
                        .grad_w = spec.loss.has_value()});
  return problems;
}

void check(const NetworkSpec& spec) {
  if (spec.layers.empty()) refuse("it has no layers; give at least one");
  const std::vector<Problem> problems = problems_of(spec);
  for (std::size_t l = 0; l < spec.layers.size(); ++l) {
    const NetworkLayer& layer = spec.layers[l];
    try {
      check_problem(problems[l]);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("network: layer {}: {}", l + 1, error.what()));
    }
    if (!(layer.activation.cap > 0))
      refuse(
          fmt::format("layer {}: the cap is {}; it must be above 0", l + 1, layer.activation.cap));
    if (l > 0 && layer.inputs != spec.layers[l - 1].outputs)
      refuse(fmt::format("layer {} has {} inputs, but layer {} has {} outputs; they must be equal",
                         l + 1, layer.inputs, l, spec.layers[l - 1].outputs));
  }
  if (spec.loss) codelets::check(spec.update);
}

Cycles NetworkCost::of(int part) const {
  Cycles cycles;
  for (std::size_t i = 0; i < part_of.size(); ++i)
    if (part_of[i] == part) cycles += ledger.steps[i].cycles + ledger.steps[i].overhead;
  return cycles;
}

Network::Network(const NetworkSpec& spec, std::span<const planner::Plan> plans,
                 const device::Machine& machine, device::ExchangeMode mode, Executor& executor) {
  check(spec);
  if (plans.size() != spec.layers.size())
    refuse(fmt::format("it has {} layers and {} plans; give a plan for each layer",
                       spec.layers.size(), plans.size()));
  for (std::size_t l = 0; l < plans.size(); ++l) check_plan(l, plans[l]);
  state_ = std::make_unique<State>(spec, plans, machine, mode, executor);
}
Network::~Network() = default;
Network::Network(Network&&) noexcept = default;

const NetworkSpec& Network::spec() const { return state_->spec; }

std::optional<partitioner::Misfit> Network::set_weights(std::int64_t layer,
                                                        const sparse::Csr<float>& weights) {
  return state_->set_weights(state_->at(layer), weights);
}

void Network::set_bias(std::int64_t layer, std::span<const float> bias) {
  internal::NetworkLayerState& to = state_->at(layer);
  if (!to.layer.bias) refuse(fmt::format("layer {} has no bias", layer + 1));
  if (std::ssize(bias) != to.problem.size.x)
    refuse(fmt::format("the bias of layer {} has {} values; this layer has {} outputs", layer + 1,
                       bias.size(), to.problem.size.x));
  to.parameters.bias.assign(bias.begin(), bias.end());
}

sparse::Csr<float> Network::weights(std::int64_t layer) const {
  return state_->weights_of(state_->at(layer));
}
std::span<const float> Network::bias(std::int64_t layer) const {
  return state_->at(layer).parameters.bias;
}

bool Network::run(const NetworkBatch& batch, const RunOptions& options, NetworkCost& cost) {
  state_->check_batch(batch);
  return state_->run(batch, options, cost);
}

NetworkCost Network::run(const NetworkBatch& batch) {
  NetworkCost cost;
  static_cast<void>(run(batch, {}, cost));  // it cannot be stopped
  return cost;
}

float Network::loss() const { return state_->loss ? state_->loss->loss() : 0; }
const Matrix<float>& Network::outputs() const { return state_->outputs; }
const Program& Network::program() const { return state_->program.program(); }
std::span<const NetworkPart> Network::parts() const { return state_->parts; }
device::MemoryUse Network::memory() const { return state_->program.memory(state_->engine); }
Bytes Network::high_water() const { return state_->engine.high_water(); }

}  // namespace tessera::runtime
