#include "tessera/pod/pod_layer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "tessera/base/data_type.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/one_caller.hpp"
#include "tessera/base/overlap.hpp"
#include "tessera/planner/layouts.hpp"
#include "tessera/pod/internal/pass_run.hpp"

namespace tessera::pod {
struct PodLayer::State : internal::LayerState {
  using LayerState::LayerState;

  OneCaller caller;
};

namespace {

void check_pass(const Problem& problem, Pass pass) {
  const std::vector<Pass> passes = passes_of(problem);
  if (std::ranges::find(passes, pass) == passes.end())
    throw Error(
        ErrorCode::InvalidArgument,
        fmt::format("{}: the plan of this layer does not include this pass", to_string(pass)));
}

template <class T>
void check_call(const internal::LayerState& state, Pass pass, const PodRunOptions& options) {
  const Problem& problem = state.problem();
  const std::string name = to_string(pass);
  if (data_type_of<T>() != problem.data_type)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{}: operands are {} but the layer is {}", name,
                            to_string(data_type_of<T>()), to_string(problem.data_type)));
  check_pass(problem, pass);
  if (state.weights.empty())
    throw Error(ErrorCode::InvalidArgument, fmt::format("{}: call set_weights first", name));
  if (options.split != nullptr && options.fault)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{}: a fault needs all devices in one process", name));
  const auto is_faulty = [&](const DevicePlace& place) {
    return place.device == options.fault->device;
  };
  if (options.fault && std::ranges::none_of(state.places(), is_faulty))
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{}: device {} is not in use, so it can have no fault", name,
                            options.fault->device));
}

template <class T>
void check_shape(const char* name, MatrixView<T> view, std::int64_t rows, std::int64_t cols) {
  if (view.rows != rows || view.cols != cols)
    throw Error(ErrorCode::InvalidArgument, fmt::format("{} is {} x {}; the layer takes {} x {}",
                                                        name, view.rows, view.cols, rows, cols));
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
    : state_(std::make_unique<State>(plan, mode, order, executor)) {}
PodLayer::~PodLayer() = default;
PodLayer::PodLayer(PodLayer&&) noexcept = default;
PodLayer& PodLayer::operator=(PodLayer&&) noexcept = default;

std::optional<PodMisfit> PodLayer::set_weights(std::span<const sparse::CheckedCsr<float>> weights) {
  const auto call = state_->caller.enter("set_weights");
  return take_weights(*state_,
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
  const auto call = state_->caller.enter("update_weights");
  auto changed = sparse::checked(sparse::with_change(weights(group), change));
  std::vector<sparse::CheckedCsr<float>> next = state_->weights;
  next[std::size_t(group)] = std::move(changed);
  return take_weights(*state_, std::move(next));
}

void PodLayer::set_values(std::span<const float> values, std::int64_t group) {
  const auto call = state_->caller.enter("set_values");
  std::vector<sparse::CheckedCsr<float>> next = state_->weights;
  const sparse::Csr<float>& old = weights(group);
  if (values.size() != old.values.size())
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("set_values: {} values are given; group {} has {}", values.size(),
                            group, old.values.size()));
  std::ranges::copy(values, next[std::size_t(group)].mutable_values().begin());
  const auto misfit = take_weights(*state_, std::move(next));
  TESSERA_ASSERT(!misfit);  // the pattern is that of before
}

template <class T>
bool PodLayer::forward(MatrixView<const T> s, MatrixView<T> q, const PodRunOptions& options,
                       PodLedger& ledger) {
  const auto call = state_->caller.enter("forward");
  check_call<T>(*state_, Pass::Fwd, options);
  const Dims& size = state_->problem().size;
  check_shape("S", s, size.g * size.y, size.z);
  check_shape("Q", q, size.g * size.x, size.z);
  check_no_overlap("forward", footprint("Q", q), std::array{footprint("S", s)});
  return internal::PassRun<T>(*state_, Pass::Fwd, options, ledger).product(s, q);
}

template <class T>
bool PodLayer::grad_a(MatrixView<const T> q_grad, MatrixView<T> s_grad,
                      const PodRunOptions& options, PodLedger& ledger) {
  const auto call = state_->caller.enter("grad_a");
  check_call<T>(*state_, Pass::GradA, options);
  const Dims& size = state_->problem().size;
  check_shape("dQ", q_grad, size.g * size.x, size.z);
  check_shape("dS", s_grad, size.g * size.y, size.z);
  check_no_overlap("grad_a", footprint("dS", s_grad), std::array{footprint("dQ", q_grad)});
  return internal::PassRun<T>(*state_, Pass::GradA, options, ledger).product(q_grad, s_grad);
}

template <class T>
bool PodLayer::grad_w(MatrixView<const T> q_grad, MatrixView<const T> s, std::span<float> gradients,
                      const PodRunOptions& options, PodLedger& ledger) {
  const auto call = state_->caller.enter("grad_w");
  check_call<T>(*state_, Pass::GradW, options);
  const Dims& size = state_->problem().size;
  check_shape("dQ", q_grad, size.g * size.x, size.z);
  check_shape("S", s, size.g * size.y, size.z);
  if (std::ssize(gradients) != values())
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("GradW: {} gradients have a place; the weights have {} values",
                            gradients.size(), values()));
  check_no_overlap("grad_w", footprint("gradients", gradients),
                   std::array{footprint("dQ", q_grad), footprint("S", s)});
  return internal::PassRun<T>(*state_, Pass::GradW, options, ledger).gradient(q_grad, s, gradients);
}

template <class T>
PodLedger PodLayer::forward(MatrixView<const T> s, MatrixView<T> q) {
  PodLedger ledger;
  [[maybe_unused]] const bool finished = forward<T>(s, q, PodRunOptions(), ledger);
  return ledger;
}

template <class T>
PodLedger PodLayer::grad_a(MatrixView<const T> q_grad, MatrixView<T> s_grad) {
  PodLedger ledger;
  [[maybe_unused]] const bool finished = grad_a<T>(q_grad, s_grad, PodRunOptions(), ledger);
  return ledger;
}

template <class T>
PodLedger PodLayer::grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                           std::span<float> gradients) {
  PodLedger ledger;
  [[maybe_unused]] const bool finished = grad_w<T>(q_grad, s, gradients, PodRunOptions(), ledger);
  return ledger;
}

template <class T>
PodLedger PodLayer::grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                           std::span<sparse::Csr<float>> gradients) {
  const std::int64_t groups = state_->problem().size.g;
  if (std::ssize(gradients) != groups)
    throw Error(
        ErrorCode::InvalidArgument,
        fmt::format("GradW: {} matrices are given for the gradients; the layer has {} groups",
                    gradients.size(), groups));
  std::vector<float> all(static_cast<std::size_t>(values()));
  const PodLedger ledger = grad_w<T>(q_grad, s, std::span(all));
  for (std::int64_t g = 0; g < groups; ++g) {
    sparse::Csr<float>& gradient = gradients[std::size_t(g)];
    gradient = weights(g);
    std::copy_n(all.begin() + state_->first_value(g), gradient.values.size(),
                gradient.values.begin());
  }
  return ledger;
}

const PodPlan& PodLayer::plan() const { return state_->plan(); }
const std::vector<DevicePlace>& PodLayer::places() const { return state_->places(); }
std::int64_t PodLayer::batch() const { return state_->problem().size.z; }
std::int64_t PodLayer::values() const { return state_->first_value(std::ssize(state_->weights)); }
Bytes PodLayer::high_water(std::size_t device) const { return state_->devices.high_water(device); }
Bytes PodLayer::high_water() const {
  Bytes most;
  for (const std::size_t d : state_->all) most = std::max(most, high_water(d));
  return most;
}

const sparse::Csr<float>& PodLayer::weights(std::int64_t group) const {
  if (group < 0 || group >= std::ssize(state_->weights))
    throw Error(ErrorCode::InvalidArgument, fmt::format("group is {}; the layer has weights of {}",
                                                        group, state_->weights.size()));
  return *state_->weights[std::size_t(group)];
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

#define TESSERA_POD_LAYER_FOR(T)                                                                \
  template PodLedger PodLayer::forward<T>(MatrixView<const T>, MatrixView<T>);                  \
  template PodLedger PodLayer::grad_a<T>(MatrixView<const T>, MatrixView<T>);                   \
  template PodLedger PodLayer::grad_w<T>(MatrixView<const T>, MatrixView<const T>,              \
                                         std::span<float>);                                     \
  template PodLedger PodLayer::grad_w<T>(MatrixView<const T>, MatrixView<const T>,              \
                                         std::span<sparse::Csr<float>>);                        \
  template bool PodLayer::forward<T>(MatrixView<const T>, MatrixView<T>, const PodRunOptions&,  \
                                     PodLedger&);                                               \
  template bool PodLayer::grad_a<T>(MatrixView<const T>, MatrixView<T>, const PodRunOptions&,   \
                                    PodLedger&);                                                \
  template bool PodLayer::grad_w<T>(MatrixView<const T>, MatrixView<const T>, std::span<float>, \
                                    const PodRunOptions&, PodLedger&);

TESSERA_POD_LAYER_FOR(float)
TESSERA_POD_LAYER_FOR(Half)
TESSERA_POD_LAYER_FOR(BFloat16)
#undef TESSERA_POD_LAYER_FOR

}  // namespace tessera::pod
