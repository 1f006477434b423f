#include "tessera/runtime/network.hpp"

#include <fmt/format.h>

#include "tessera/base/error.hpp"
#include "tessera/base/one_caller.hpp"
#include "tessera/runtime/internal/network_state.hpp"
#include "tessera/sparse/checked.hpp"

namespace tessera::runtime {
namespace {

[[noreturn]] void refuse(const std::string& message) { throw_invalid("network: " + message); }

void check_plan(std::size_t number, const NetworkLayer& layer, const planner::Plan& plan) {
  const auto refuse_plan = [&](const char* reason, const char* remedy) {
    refuse(fmt::format("the plan of layer {} {}; {}", number + 1, reason, remedy));
  };
  if (layer.dense) {
    if (!plan.dense)
      refuse_plan("has buckets and the layer is dense",
                  "plan it with planConstraints.useDense true, or make the layer sparse");
    return;
  }
  if (plan.use_dense)
    refuse_plan("is dense", "plan it with planConstraints.useDense false, or make the layer dense");
  if (plan.operand_placement != Placement::AtHome)
    refuse_plan("spreads its operands", "plan it with operandPlacement \"at-home\"");
}

// Returns call(), whose errors get the number of the layer.
template <class Call>
auto of_layer(std::int64_t layer, const Call& call) {
  try {
    return call();
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("network: layer {}: {}", layer + 1, error.what()));
  }
}

}  // namespace

Cycles NetworkCost::of(int part) const {
  Cycles cycles;
  for (std::size_t i = 0; i < part_of.size(); ++i)
    if (part_of[i] == part) cycles += ledger.steps[i].cycles + ledger.steps[i].overhead;
  return cycles;
}

Bytes NetworkCost::moved(int part) const {
  Bytes bytes;
  for (std::size_t i = 0; i < part_of.size(); ++i)
    if (part_of[i] == part) bytes += ledger.steps[i].moved;
  return bytes;
}

Network::Network(const NetworkSpec& spec, std::span<const planner::Plan> plans,
                 const device::Machine& machine, device::ExchangeMode mode, Executor& executor) {
  planner::check(spec);
  if (plans.size() != spec.layers.size())
    refuse(fmt::format("it has {} layers and {} plans; give a plan for each layer",
                       spec.layers.size(), plans.size()));
  for (std::size_t l = 0; l < plans.size(); ++l) check_plan(l, spec.layers[l], plans[l]);
  state_ = std::make_unique<State>(spec, plans, machine, mode, executor);
}
Network::~Network() = default;
Network::Network(Network&&) noexcept = default;

const NetworkSpec& Network::spec() const { return state_->spec; }

std::optional<partitioner::Misfit> Network::set_weights(std::int64_t layer,
                                                        const sparse::Csr<float>& weights) {
  internal::NetworkLayerState& to = state_->at(layer);
  const auto call = state_->enter("set_weights");
  return to.set_weights(sparse::checked(weights));
}

partitioner::SavedWeights Network::saved_weights(std::int64_t layer) const {
  const internal::NetworkLayerState& from = state_->at(layer);
  if (!from.has_weights())
    refuse(fmt::format("layer {} has no weights; call set_weights first", layer + 1));
  return of_layer(layer, [&] { return from.saved_weights(); });
}

void Network::restore_weights(std::int64_t layer, const partitioner::SavedWeights& saved) {
  const auto call = state_->enter("restore_weights");
  of_layer(layer, [&] { state_->at(layer).restore_weights(saved); });
}

void Network::set_bias(std::int64_t layer, std::span<const float> bias) {
  const auto call = state_->enter("set_bias");
  internal::NetworkLayerState& to = state_->at(layer);
  if (!to.layer.bias) refuse(fmt::format("layer {} has no bias", layer + 1));
  if (std::ssize(bias) != to.problem.size.x)
    refuse(fmt::format("the bias of layer {} has {} values; this layer has {} outputs", layer + 1,
                       bias.size(), to.problem.size.x));
  to.parameters.bias.assign(bias.begin(), bias.end());
}

void Network::set_learning_rate(double rate) {
  const auto call = state_->enter("set_learning_rate");
  const codelets::Optimiser changed = codelets::with_learning_rate(state_->spec.optimiser, rate);
  codelets::check_in_float(changed);
  state_->spec.optimiser = changed;
}

sparse::Csr<float> Network::weights(std::int64_t layer) const {
  internal::NetworkLayerState& from = state_->at(layer);
  if (!from.has_weights()) refuse("call set_weights first");
  return from.current_weights();
}
std::span<const float> Network::bias(std::int64_t layer) const {
  return state_->at(layer).parameters.bias;
}

bool Network::run(const NetworkBatch& batch, const PassOptions& options, NetworkCost& cost) {
  check_batch(state_->spec, batch);
  state_->check_weights();
  return state_->run(batch, options, cost);
}

NetworkCost Network::run(const NetworkBatch& batch) {
  NetworkCost cost;
  static_cast<void>(run(batch, {}, cost));  // it cannot be stopped
  return cost;
}

float Network::loss() const { return state_->loss ? state_->loss->loss() : 0; }
const Matrix<float>& Network::outputs() const { return state_->outputs; }
Bytes Network::pattern_bytes() const {
  return state_->sum(&internal::NetworkLayerState::pattern_bytes);
}
Bytes Network::value_bytes() const {
  return state_->sum(&internal::NetworkLayerState::value_bytes);
}
Bytes Network::state_bytes() const {
  return state_->sum(&internal::NetworkLayerState::state_bytes);
}
std::vector<planner::WorkCost> Network::planned_work(const planner::NetworkPlan& plan) const {
  state_->check_weights();
  if (plan.plans.size() != state_->layers.size())
    refuse(fmt::format("the plan is for {} layers; this network has {}", plan.plans.size(),
                       state_->layers.size()));
  std::vector<planner::WorkCost> work = plan.work;
  for (planner::WorkCost& part : work)
    if (const std::optional<Pass> pass = pass_of(part.work))
      part.cycles +=
          state_->at(part.layer).multiply_excess(plan.plans[std::size_t(part.layer)], *pass);
  return work;
}

const Program& Network::program() const { return state_->program.program(); }
std::span<const NetworkPart> Network::parts() const { return state_->parts; }
device::MemoryUse Network::memory() const { return state_->program.memory(); }
Bytes Network::high_water() const { return state_->program.engine().high_water(); }

}  // namespace tessera::runtime
