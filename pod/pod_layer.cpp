#include "tessera/pod/pod_layer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tessera/base/data_type.hpp"
#include "tessera/base/error.hpp"
#include "tessera/planner/layouts.hpp"
#include "tessera/pod/internal/pass_run.hpp"

namespace tessera::pod {
struct PodLayer::State : internal::LayerState, layer::BackendOf<PodLedger> {
  using LayerState::LayerState;

  layer::LayerFacts facts() const override;
  std::int64_t values() const { return first_value(std::ssize(weights)); }

 private:
  bool takes(const layer::TargetOptions& options) const override {
    return dynamic_cast<const DeviceOptions*>(&options) != nullptr;
  }
  bool repairs_parts() const override { return true; }
  bool compute(Pass pass, const layer::Operands& operands, const layer::PassOptions& options,
               PodLedger& ledger) override;
  double seconds(const PodLedger& ledger) const override { return ledger.seconds(); }
};

namespace {

void check_pass(const Problem& problem, Pass pass) {
  const std::vector<Pass> passes = passes_of(problem);
  if (std::ranges::find(passes, pass) == passes.end())
    throw Error(
        ErrorCode::InvalidArgument,
        fmt::format("{}: the plan of this layer does not include this pass", to_string(pass)));
}

void check_fault(const internal::LayerState& state, Pass pass, const DeviceOptions& options) {
  if (!options.fault) return;
  if (options.split != nullptr)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{}: a fault needs all devices in one process", to_string(pass)));
  const auto is_faulty = [&](const DevicePlace& place) {
    return place.device == options.fault->device;
  };
  if (std::ranges::none_of(state.places(), is_faulty))
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{}: device {} is not in use, so it can have no fault", to_string(pass),
                            options.fault->device));
}

// All layers have their new weights, or all have those of before.
std::optional<PodMisfit> take_weights(internal::LayerState& state,
                                      std::vector<sparse::CheckedCsr<float>> weights) {
  std::optional<PodMisfit> misfit = state.devices.set_weights(weights);
  if (!misfit) state.weights = std::move(weights);
  return misfit;
}

}  // namespace

PodLayer::PodLayer(const PodPlan& plan, device::ExchangeMode mode, DeviceOrder order,
                   Executor& executor)
    : LayerOf(std::make_unique<State>(plan, mode, order, executor)) {}

PodLayer::State& PodLayer::state() const { return static_cast<State&>(backend()); }

std::optional<PodMisfit> PodLayer::set_weights(std::span<const sparse::CheckedCsr<float>> weights) {
  const auto call = state().caller.enter("set_weights");
  return take_weights(state(),
                      std::vector<sparse::CheckedCsr<float>>(weights.begin(), weights.end()));
}

std::optional<PodMisfit> PodLayer::set_weights(const sparse::CheckedCsr<float>& weights) {
  return set_weights(std::span(&weights, 1));
}

std::optional<PodMisfit> PodLayer::set_weights(std::span<const sparse::Csr<float>> weights) {
  std::vector<sparse::CheckedCsr<float>> legal;
  for (const sparse::Csr<float>& matrix : weights) legal.push_back(sparse::checked(matrix));
  return set_weights(legal);
}

std::optional<PodMisfit> PodLayer::set_weights(const sparse::Csr<float>& weights) {
  return set_weights(std::span(&weights, 1));
}

std::optional<PodMisfit> PodLayer::update_weights(const sparse::PatternChange& change,
                                                  std::int64_t group) {
  const auto call = state().caller.enter("update_weights");
  auto changed = sparse::checked(sparse::with_change(weights(group), change));
  std::vector<sparse::CheckedCsr<float>> next = state().weights;
  next[std::size_t(group)] = std::move(changed);
  return take_weights(state(), std::move(next));
}

void PodLayer::set_values(std::span<const float> values, std::int64_t group) {
  const auto call = state().caller.enter("set_values");
  std::vector<sparse::CheckedCsr<float>> next = state().weights;
  const sparse::Csr<float>& old = weights(group);
  if (values.size() != old.values.size())
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("set_values: {} values are given; group {} has {}", values.size(),
                            group, old.values.size()));
  std::ranges::copy(values, next[std::size_t(group)].mutable_values().begin());
  const auto misfit = take_weights(state(), std::move(next));
  TESSERA_ASSERT(!misfit);  // the pattern is that of before
}

bool PodLayer::State::compute(Pass pass, const layer::Operands& operands,
                              const layer::PassOptions& options, PodLedger& ledger) {
  const DeviceOptions none;
  const auto& target =
      options.target == nullptr ? none : static_cast<const DeviceOptions&>(*options.target);
  check_fault(*this, pass, target);
  return with_type(problem().data_type, [&]<class T>(T) {
    internal::PassRun<T> run(*this, pass, options, target, ledger);
    if (pass == Pass::GradW)
      return run.gradient(operands.in.as<T>(), operands.in_s.as<T>(), operands.gradients);
    return run.product(operands.in.as<T>(), operands.out.as<T>());
  });
}

layer::LayerFacts PodLayer::State::facts() const {
  const Problem& of = problem();
  return {.problem = of,
          .passes = {true, of.grad_a, of.grad_w},
          .has_weights = !weights.empty(),
          .values = values(),
          .output_rows = of.size.g * of.size.x,
          .input_rows = of.size.g * of.size.y};
}

const PodPlan& PodLayer::plan() const { return state().plan(); }
const std::vector<DevicePlace>& PodLayer::places() const { return state().places(); }
std::int64_t PodLayer::batch() const { return state().problem().size.z; }
std::int64_t PodLayer::values() const { return state().values(); }
Bytes PodLayer::high_water(std::size_t device) const { return state().devices.high_water(device); }
Bytes PodLayer::high_water() const {
  Bytes most;
  for (const std::size_t d : state().all) most = std::max(most, high_water(d));
  return most;
}

const sparse::Csr<float>& PodLayer::weights(std::int64_t group) const {
  if (group < 0 || group >= std::ssize(state().weights))
    throw Error(ErrorCode::InvalidArgument, fmt::format("group is {}; the layer has weights of {}",
                                                        group, state().weights.size()));
  return *state().weights[std::size_t(group)];
}

// Devices round their partial sums to the layer's type before these travel, so the bound is that of
// sums in that type if devices add to each other's sums.
verify::Rounding PodLayer::rounding(Pass pass) const {
  check_pass(plan().problem, pass);
  const Dims parts = plan().grid.parts();
  std::int64_t devices = 1;
  switch (pass) {
    case Pass::Fwd:
      devices = parts.y;
      break;
    case Pass::GradA:
      devices = parts.x;
      break;
    case Pass::GradW:
      devices = parts.z * plan().serial_parts;
      break;
  }
  std::int64_t partials = 1;
  for (const DeviceShape& shape : plan().shapes) {
    const auto& dense = shape.plan.dense;
    partials = std::max(
        partials, dense ? dense->find(pass)->parts.inner : planner::partial_sums(shape.plan, pass));
  }
  const Problem& problem = plan().problem;
  return {problem.data_type, devices > 1 ? problem.data_type : problem.partials_type,
          partials * devices};
}

}  // namespace tessera::pod
