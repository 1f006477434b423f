#include "tessera/runtime/internal/network_dense_layer.hpp"

#include <fmt/format.h>

#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/layer/check_weights.hpp"
#include "tessera/runtime/internal/layer_check.hpp"
#include "tessera/sparse/convert.hpp"

namespace tessera::runtime::internal {

using device::SlotKind;

namespace {

// Throws Error{InvalidArgument} unless the dense plan has a pass of the problem in one round.
void check_pass_plan(const Problem& problem, const planner::DensePlan& plan, Pass pass) {
  check_dense_plan(plan, problem, pass);
  const std::int64_t rounds = plan.find(pass)->rounds.product();
  if (rounds != 1)
    throw_invalid(
        fmt::format("{} of the dense plan runs in {} rounds; a network runs it in one: use more "
                    "tiles or a smaller batch",
                    to_string(pass), rounds));
}

}  // namespace

NetworkDenseLayer::NetworkDenseLayer(const NetworkLayer& l, const Problem& p,
                                     const planner::Plan& plan,
                                     const codelets::Optimiser* optimiser, TileProgram& program)
    : NetworkLayerState(l, p, optimiser, program) {
  const auto make = [&](std::optional<DensePass>& state, Pass pass, PassHomes& homes) {
    check_pass_plan(p, *plan.dense, pass);
    state.emplace(*plan.dense, pass, std::nullopt, program, homes);
  };
  make(fwd_, Pass::Fwd, fwd_homes_);
  if (recomputes()) make(again_, Pass::Fwd, again_homes_);
  if (p.grad_a) make(grad_a_, Pass::GradA, grad_a_homes_);
  if (p.grad_w) make(grad_w_, Pass::GradW, grad_w_homes_);
  const TensorHome in_gradient =
      grad_a_ ? tensor_home(planner::DenseHomes(grad_a_->plan).result()) : TensorHome{};
  set_result_homes(tensor_home(planner::DenseHomes(fwd_->plan).result()),
                   grad_a_ ? &in_gradient : nullptr);
  weights_ = tensor_home(grad_w_ ? planner::DenseHomes(grad_w_->plan).result()
                                 : planner::DenseHomes(fwd_->plan).shares(planner::Side::Left));
  fwd_homes_.weights = again_homes_.weights = grad_a_homes_.weights = &weights_;
}

// Each share of the weights is a part; tiles without any have an empty one.
void NetworkDenseLayer::declare_weights() {
  add_slots(program_, weights_, "weights", element(), /*resident=*/true);
  parts.resize(std::size_t((grad_w_ ? *grad_w_ : *fwd_).map.tiles()));
  for (std::size_t t = 0; t < parts.size(); ++t) parts[t].tile = TileId(std::int64_t(t));
  std::int64_t first = 0;
  for (const HomeShare& share : weights_.shares) {
    UpdatedPart& part = parts[std::size_t(share.tile.value)];
    part.values = {first, first + share.elements.size()};
    part.row_bytes = element();
    part.weights = share.slot;
    first = part.values.end;
  }
}

void NetworkDenseLayer::add_loaded(Uses& uses) const { uses.writes.push_back(weights_.buffer); }

const Reduction& NetworkDenseLayer::declare_product(Pass pass, Turn turn) {
  DensePass& declared = pass == Pass::GradA ? *grad_a_ : turn == Turn::First ? *fwd_ : *again_;
  declared.declare();
  return declared.rounds.front().reduction;
}

BufferId NetworkDenseLayer::declare_gradients_at_home() {
  TensorHome gradients = weights_;
  grad_w_->rounds.front().reduction.give_slots(gradients);
  for (const HomeShare& share : gradients.shares)
    parts[std::size_t(share.tile.value)].gradients = share.slot;
  return gradients.buffer;
}

template <class Visit>
void NetworkDenseLayer::for_each_weight(Visit&& visit) const {
  for (const HomeShare& share : weights_.shares) {
    const std::int64_t first = parts[std::size_t(share.tile.value)].values.begin;
    weights_.for_each_element(share, [&](std::int64_t row, std::int64_t col, std::int64_t at) {
      visit(row, col, std::size_t(first + at));
    });
  }
}

std::optional<partitioner::Misfit> NetworkDenseLayer::set_weights(
    const sparse::CheckedCsr<float>& given) {
  layer::check_weights(problem, {&given, 1});
  const std::int64_t rows = problem.size.x, cols = problem.size.y;
  const Matrix<float> all = sparse::to_dense(*given);
  std::vector<std::byte> values(std::size_t(rows * cols * element()));
  with_type(problem.data_type, [&]<class T>(T) {
    auto* const to = reinterpret_cast<T*>(values.data());
    for_each_weight([&](std::int64_t row, std::int64_t col, std::size_t position) {
      to[position] = T(all(row, col));
    });
  });
  parameters.values = std::move(values);
  reset_states(rows * cols);
  return std::nullopt;
}

sparse::Csr<float> NetworkDenseLayer::current_weights() {
  sparse::Csr<float> result = full_matrix(problem.size.x, problem.size.y);
  with_type(problem.data_type, [&]<class T>(T) {
    const auto* const from = reinterpret_cast<const T*>(parameters.values.data());
    for_each_weight([&](std::int64_t row, std::int64_t col, std::size_t position) {
      result.values[std::size_t(row * result.cols + col)] = float(from[position]);
    });
  });
  return result;
}

}  // namespace tessera::runtime::internal
