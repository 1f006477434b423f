#include "tessera/runtime/fully_connected.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/runtime/dense_pass.hpp"
#include "tessera/runtime/grad_w_pass.hpp"
#include "tessera/runtime/internal/layer_weights.hpp"
#include "tessera/runtime/internal/padded.hpp"

namespace tessera::runtime {

partitioner::TileGrid tile_grid(const planner::Problem& problem, const planner::Plan& plan,
                                const device::Machine& machine) {
  Dims grains = ceil_div(problem.size_in_blocks(), plan.grain);
  grains.z = round_up(grains.z, plan.partition.z);  // equal z on every tile
  const Dims padded = grains * plan.grain, parts = plan.partition;
  return {.size = {1, padded.x, padded.y, padded.z},
          .block = plan.block,
          .z_grain = plan.grain.z,
          .splits = {1, parts.x, parts.y, parts.z},
          .data_type = problem.data_type,
          .workers = machine.workers,
          .word_bits = machine.word_bits,
          .grad_w = problem.grad_w,
          .separate_grad_a = problem.grad_a && !plan.shared_buckets(),
          .meta_words = plan.fwd_meta_words.value,
          .grad_a_words = plan.grad_a_meta_words.value,
          .blocks = plan.blocks_per_bucket()};
}

struct FullyConnected::State {
  planner::Problem problem;
  partitioner::TileGrid grid;  // of one group
  internal::LayerWeights weights;
  std::optional<DensePass> fwd, grad_a;
  std::optional<GradWPass> grad_w;

  template <class T>
  void check_call(bool has_pass, const char* pass) const {
    if (data_type_of<T>() != problem.data_type)
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("{}: operands are {} but the layer is {}", pass,
                              to_string(data_type_of<T>()), to_string(problem.data_type)));
    if (!has_pass)
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("{}: the layer was planned without this pass", pass));
    if (weights.empty())
      throw Error(ErrorCode::InvalidArgument, fmt::format("{}: call set_weights first", pass));
  }
  // Operands of x or y rows a group: as they come, and as programs want them.
  template <class T>
  internal::Padded<T> operand(const char* name, MatrixView<T> view, std::int64_t Dims::*side) const;
  template <class T>
  device::Ledger run(DensePass& pass, internal::Padded<const T> in, internal::Padded<T> out) const;
};

template <class T>
internal::Padded<T> FullyConnected::State::operand(const char* name, MatrixView<T> view,
                                                   std::int64_t Dims::*side) const {
  const std::int64_t rows = problem.size.g * problem.size.*side;
  if (view.rows != rows || view.cols != problem.size.z)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{} is {} x {}; this layer needs {} x {}", name, view.rows, view.cols,
                            rows, problem.size.z));
  return {view, problem.size.g, grid.size.*side, grid.size.z};
}

template <class T>
device::Ledger FullyConnected::State::run(DensePass& pass, internal::Padded<const T> in,
                                          internal::Padded<T> out) const {
  in.read();
  device::Ledger ledger = pass.run(weights.image(), in.bytes(), out.bytes());
  out.write_back();
  return ledger;
}

FullyConnected::FullyConnected(const planner::Problem& problem, const planner::Plan& plan,
                               const device::Machine& machine, device::ExchangeMode mode,
                               Executor& executor) {
  planner::check_problem(problem);
  if (plan.partition.g != problem.size.g)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("the plan is for {} groups, the layer has {}; plan it anew",
                            plan.partition.g, problem.size.g));
  const partitioner::TileGrid grid = tile_grid(problem, plan, machine);
  partitioner::check(grid);
  state_ = std::make_unique<State>(
      State{problem, grid, {problem, grid, executor}, std::nullopt, std::nullopt, std::nullopt});
  PassSpec spec{grid, problem.size.g, plan.fwd, problem.partials_type};
  state_->fwd.emplace(spec, machine, mode, executor);
  spec.method = plan.grad_a;
  if (problem.grad_a) state_->grad_a.emplace(spec, machine, mode, executor);
  spec.method = plan.grad_w;
  const auto exchange =
      plan.grad_w_exchange_buckets ? GradWExchange::Buckets : GradWExchange::Inputs;
  if (problem.grad_w) state_->grad_w.emplace(spec, exchange, machine, mode, executor);
}

FullyConnected::~FullyConnected() = default;
FullyConnected::FullyConnected(FullyConnected&&) noexcept = default;
FullyConnected& FullyConnected::operator=(FullyConnected&&) noexcept = default;

std::optional<partitioner::Misfit> FullyConnected::set_weights(
    std::span<const sparse::Csr<float>> weights, const partitioner::EncodeOptions& options) {
  return state_->weights.set(weights, options);
}

std::optional<partitioner::Misfit> FullyConnected::set_weights(
    const sparse::Csr<float>& weights, const partitioner::EncodeOptions& options) {
  return set_weights({&weights, 1}, options);
}

std::optional<partitioner::Misfit> FullyConnected::update_weights(
    const sparse::PatternChange& change, std::int64_t group) {
  return state_->weights.update(change, group);
}

void FullyConnected::set_values(std::span<const float> values, std::int64_t group) {
  state_->weights.set_values(values, group);
}

template <class T>
device::Ledger FullyConnected::forward(MatrixView<const T> s, MatrixView<T> q) {
  State& state = *state_;
  state.check_call<T>(true, "forward");
  return state.run<T>(*state.fwd, state.operand("s", s, &Dims::y), state.operand("q", q, &Dims::x));
}

template <class T>
device::Ledger FullyConnected::grad_a(MatrixView<const T> q_grad, MatrixView<T> s_grad) {
  State& state = *state_;
  state.check_call<T>(state.grad_a.has_value(), "grad_a");
  return state.run<T>(*state.grad_a, state.operand("q_grad", q_grad, &Dims::x),
                      state.operand("s_grad", s_grad, &Dims::y));
}

template <class T>
device::Ledger FullyConnected::grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                                      std::span<sparse::Csr<float>> gradients) {
  State& state = *state_;
  state.check_call<T>(state.grad_w.has_value(), "grad_w");
  const std::int64_t groups = state.problem.size.g;
  if (std::ssize(gradients) != groups)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{} gradients are asked for; this layer has one for each of its {} "
                            "groups",
                            gradients.size(), groups));
  auto q_in = state.operand("q_grad", q_grad, &Dims::x), s_in = state.operand("s", s, &Dims::y);
  q_in.read();
  s_in.read();
  const BucketImage image = state.weights.image();
  std::vector<T> in_order(std::size_t(groups * state.grid.buckets()) *
                          std::size_t(image.groups[0].values_per_bucket()));
  device::Ledger ledger = state.grad_w->run(image, q_in.bytes(), s_in.bytes(),
                                            reinterpret_cast<std::byte*>(in_order.data()));
  for (std::int64_t g = 0; g < groups; ++g)
    state.weights.to_given<T>(in_order, g, gradients[std::size_t(g)]);
  return ledger;
}

template <class T>
device::Ledger FullyConnected::grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                                      sparse::Csr<float>& gradient) {
  return grad_w<T>(q_grad, s, std::span(&gradient, 1));
}

const partitioner::Buckets& FullyConnected::buckets(std::int64_t group) const {
  return state_->weights.buckets(group);
}

partitioner::SpillStats FullyConnected::spill() const { return state_->weights.spill(); }

partitioner::Travel FullyConnected::travel() const {
  state_->weights.buckets(0);  // refuses where there are none
  return state_->weights.image().travel();
}

const sparse::Csr<float>& FullyConnected::weights(std::int64_t group) const {
  return state_->weights.given(group);
}

Bytes FullyConnected::high_water() const {
  const State& s = *state_;
  Bytes most = s.fwd->high_water();
  if (s.grad_a) most = std::max(most, s.grad_a->high_water());
  if (s.grad_w) most = std::max(most, s.grad_w->high_water());
  return most;
}

template device::Ledger FullyConnected::forward(MatrixView<const float>, MatrixView<float>);
template device::Ledger FullyConnected::forward(MatrixView<const Half>, MatrixView<Half>);
template device::Ledger FullyConnected::grad_a(MatrixView<const float>, MatrixView<float>);
template device::Ledger FullyConnected::grad_a(MatrixView<const Half>, MatrixView<Half>);
template device::Ledger FullyConnected::grad_w(MatrixView<const float>, MatrixView<const float>,
                                               sparse::Csr<float>&);
template device::Ledger FullyConnected::grad_w(MatrixView<const Half>, MatrixView<const Half>,
                                               sparse::Csr<float>&);
template device::Ledger FullyConnected::grad_w(MatrixView<const float>, MatrixView<const float>,
                                               std::span<sparse::Csr<float>>);
template device::Ledger FullyConnected::grad_w(MatrixView<const Half>, MatrixView<const Half>,
                                               std::span<sparse::Csr<float>>);

}  // namespace tessera::runtime
