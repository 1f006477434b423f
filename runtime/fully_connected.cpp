#include "tessera/runtime/fully_connected.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/one_caller.hpp"
#include "tessera/base/overlap.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/planner/layouts.hpp"
#include "tessera/runtime/internal/layer_check.hpp"
#include "tessera/runtime/internal/layout_passes.hpp"
#include "tessera/runtime/internal/transposed_layout.hpp"
#include "tessera/verify/repair.hpp"

namespace tessera::runtime {

partitioner::TileGrid tile_grid(const Problem& problem, const planner::Plan& plan,
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
  Problem problem;
  internal::LayoutPasses forward_layout;
  std::optional<internal::TransposedLayout> transposed_layout;  // if the plan has one
  Executor* executor = nullptr;
  // Scratch that is reused from call to call: gradients, and values or gradients in bucket order.
  std::vector<sparse::Csr<float>> gradients_by_group = {};
  std::vector<std::byte> encoded = {};
  OneCaller caller = {};

  void set_values(std::span<const float> values, std::int64_t group);
  template <class T>
  bool grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
              std::span<sparse::Csr<float>> gradients, const RunOptions& options,
              device::Ledger& ledger);

  // Returns the layout that runs a pass, and the pass of that layout which it is.
  std::pair<const internal::LayoutPasses*, Pass> runs(Pass pass) const;
  Bytes high_water() const;

  // Resizes `encoded` to `count` values and returns them.
  template <class T>
  std::span<T> encoded_as(std::int64_t count) {
    encoded.resize(std::size_t(count) * sizeof(T));
    return {reinterpret_cast<T*>(encoded.data()), std::size_t(count)};
  }

  // Throws Error{InvalidArgument} for operands of another type, a pass that the layer was planned
  // without, and a call before the first set_weights.
  template <class T>
  void check_call(bool has_pass, const char* pass) const {
    if (data_type_of<T>() != problem.data_type)
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("{}: operands are {} but the layer is {}", pass,
                              to_string(data_type_of<T>()), to_string(problem.data_type)));
    if (!has_pass)
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("{}: the plan of this layer does not include this pass", pass));
    if (forward_layout.weights().empty())
      throw Error(ErrorCode::InvalidArgument, fmt::format("{}: call set_weights first", pass));
  }
  template <class T>
  void check_operand(const char* name, MatrixView<T> view, std::int64_t Dims::*side) const {
    internal::check_operand(name, view.rows, view.cols, problem, side);
  }
};

std::pair<const internal::LayoutPasses*, Pass> FullyConnected::State::runs(Pass pass) const {
  if (transposed_layout && pass == Pass::GradA) return {&transposed_layout->layout(), Pass::Fwd};
  if (transposed_layout && pass == Pass::GradW && transposed_layout->runs_grad_w())
    return {&transposed_layout->layout(), pass};
  return {&forward_layout, pass};
}

// The buckets of both layouts, and the table by which values move between them, are on a tile all
// the time.
Bytes FullyConnected::State::high_water() const {
  if (!transposed_layout) return forward_layout.high_water();
  const internal::LayoutPasses& other = transposed_layout->layout();
  const Bytes table = transposed_layout->rehome().table_bytes();
  return std::max({forward_layout.high_water() + other.bucket_bytes() + table,
                   other.high_water() + forward_layout.bucket_bytes() + table,
                   transposed_layout->rehome().high_water() + forward_layout.word_bytes() +
                       other.word_bytes()});
}

FullyConnected::FullyConnected(const Problem& problem, const planner::Plan& plan,
                               const device::Machine& machine, device::ExchangeMode mode,
                               Executor& executor) {
  check_problem(problem);
  if (plan.backward.empty()) {
    state_ = std::make_unique<State>(
        State{problem, {problem, plan, machine, mode, executor}, std::nullopt, &executor});
    return;
  }
  const auto [forward_layout, transposed_layout] =
      planner::two_problems(problem, plan.runs_transposed(Pass::GradW));
  internal::LayoutPasses forward(forward_layout, plan, machine, mode, executor);
  internal::LayoutPasses own(transposed_layout, plan.backward.front(), machine, mode, executor);
  internal::RehomePass rehome({forward.grid(), own.grid(), problem.size.g}, machine, mode,
                              executor);
  state_ = std::make_unique<State>(
      State{problem, std::move(forward),
            internal::TransposedLayout(std::move(own), std::move(rehome)), &executor});
  if (const Bytes most = state_->high_water(); most > machine.tile_memory)
    throw Error(ErrorCode::LimitExceeded,
                fmt::format("a tile needs {} bytes for the buckets of both layouts, but {} has {} "
                            "per tile; plan with perPassPlans false",
                            most.value, machine.name, machine.tile_memory.value));
}

FullyConnected::~FullyConnected() = default;
FullyConnected::FullyConnected(FullyConnected&&) noexcept = default;
FullyConnected& FullyConnected::operator=(FullyConnected&&) noexcept = default;

std::optional<partitioner::Misfit> FullyConnected::set_weights(
    std::span<const sparse::CheckedCsr<float>> weights, const partitioner::EncodeOptions& options) {
  const auto call = state_->caller.enter("set_weights");
  auto& forward_layout = state_->forward_layout;
  auto& transposed_layout = state_->transposed_layout;
  forward_layout.weights().check(weights);  // so that messages name rows and columns of R
  if (transposed_layout)
    if (auto misfit = transposed_layout->encode(weights, options)) return misfit;
  if (auto misfit = forward_layout.weights().encode(weights, options)) return misfit;
  if (transposed_layout) transposed_layout->take();
  forward_layout.weights().take();
  return std::nullopt;
}

const partitioner::LoadCost& FullyConnected::load_cost() const {
  return state_->forward_layout.load_cost();
}

std::optional<partitioner::Misfit> FullyConnected::set_weights(
    const sparse::CheckedCsr<float>& weights, const partitioner::EncodeOptions& options) {
  return set_weights(std::span(&weights, 1), options);
}

std::optional<partitioner::Misfit> FullyConnected::set_weights(
    std::span<const sparse::Csr<float>> weights, const partitioner::EncodeOptions& options) {
  std::vector<sparse::CheckedCsr<float>> kept;
  for (const sparse::Csr<float>& matrix : weights) kept.push_back(sparse::checked(matrix));
  return set_weights(kept, options);
}

std::optional<partitioner::Misfit> FullyConnected::set_weights(
    const sparse::Csr<float>& weights, const partitioner::EncodeOptions& options) {
  return set_weights(sparse::checked(weights), options);
}

std::optional<partitioner::Misfit> FullyConnected::update_weights(
    const sparse::PatternChange& change, std::int64_t group) {
  const auto call = state_->caller.enter("update_weights");
  auto& forward_layout = state_->forward_layout;
  auto& transposed_layout = state_->transposed_layout;
  if (auto misfit = forward_layout.weights().encode_update(change, group)) return misfit;
  if (transposed_layout)
    if (auto misfit = transposed_layout->encode_update(change, group)) return misfit;
  forward_layout.weights().take_update(group);
  if (transposed_layout) transposed_layout->take_update(group);
  return std::nullopt;
}

void FullyConnected::State::set_values(std::span<const float> values, std::int64_t group) {
  if (transposed_layout) {
    forward_layout.weights().given(group);  // throws for a group that the layer does not have
    transposed_layout->reserve_values(group);
  }
  forward_layout.weights().set_values(values, group);
  if (transposed_layout) transposed_layout->set_values(values, group);
}

void FullyConnected::set_values(std::span<const float> values, std::int64_t group) {
  const auto call = state_->caller.enter("set_values");
  state_->set_values(values, group);
}

template <class T>
bool FullyConnected::forward(MatrixView<const T> s, MatrixView<T> q, const RunOptions& options,
                             device::Ledger& ledger) {
  if (options.repair)
    return verify::run_and_repair(
        options, [&](const RunOptions& once) { return forward<T>(s, q, once, ledger); });
  const auto call = state_->caller.enter("forward");
  state_->check_call<T>(true, "forward");
  check_no_overlap("forward", footprint("q", q), std::array{footprint("s", s)});
  return state_->forward_layout.product<T>(Pass::Fwd, s, q, options, ledger);
}

template <class T>
bool FullyConnected::grad_a(MatrixView<const T> q_grad, MatrixView<T> s_grad,
                            const RunOptions& options, device::Ledger& ledger) {
  if (options.repair)
    return verify::run_and_repair(
        options, [&](const RunOptions& once) { return grad_a<T>(q_grad, s_grad, once, ledger); });
  State& state = *state_;
  const auto call = state.caller.enter("grad_a");
  state.check_call<T>(state.transposed_layout || state.forward_layout.has(Pass::GradA), "grad_a");
  check_no_overlap("grad_a", footprint("s_grad", s_grad), std::array{footprint("q_grad", q_grad)});
  if (!state.transposed_layout)
    return state.forward_layout.product<T>(Pass::GradA, q_grad, s_grad, options, ledger);
  state.check_operand("q_grad", q_grad, &Dims::x);
  state.check_operand("s_grad", s_grad, &Dims::y);
  return state.transposed_layout->grad_a<T>(state.forward_layout.weights(), q_grad, s_grad, options,
                                            ledger);
}

template <class T>
bool FullyConnected::State::grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                                   std::span<sparse::Csr<float>> gradients,
                                   const RunOptions& options, device::Ledger& ledger) {
  const bool is_transposed = runs(Pass::GradW).first != &forward_layout;
  check_call<T>(is_transposed || forward_layout.has(Pass::GradW), "grad_w");
  if (!is_transposed) return forward_layout.gradient<T>(q_grad, s, gradients, options, ledger);
  check_operand("q_grad", q_grad, &Dims::x);
  check_operand("s", s, &Dims::y);
  return transposed_layout->grad_w<T>(forward_layout.weights(), q_grad, s, gradients, options,
                                      ledger);
}

template <class T>
bool FullyConnected::grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                            std::span<sparse::Csr<float>> gradients, const RunOptions& options,
                            device::Ledger& ledger) {
  if (options.repair)
    return verify::run_and_repair(options, [&](const RunOptions& once) {
      return grad_w<T>(q_grad, s, gradients, once, ledger);
    });
  const auto call = state_->caller.enter("grad_w");
  for (const sparse::Csr<float>& gradient : gradients)
    check_no_overlap("grad_w", footprint("gradients", std::span(gradient.values)),
                     std::array{footprint("q_grad", q_grad), footprint("s", s)});
  return state_->grad_w<T>(q_grad, s, gradients, options, ledger);
}

template <class T>
bool FullyConnected::grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                            std::span<float> gradients, const RunOptions& options,
                            device::Ledger& ledger) {
  if (options.repair)
    return verify::run_and_repair(options, [&](const RunOptions& once) {
      return grad_w<T>(q_grad, s, gradients, once, ledger);
    });
  State& state = *state_;
  const auto call = state.caller.enter("grad_w");
  if (std::ssize(gradients) != values())
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("grad_w: there is space for {} gradients; this layer has {} values",
                            gradients.size(), values()));
  check_no_overlap("grad_w", footprint("gradients", gradients),
                   std::array{footprint("q_grad", q_grad), footprint("s", s)});
  state.gradients_by_group.resize(std::size_t(state.problem.size.g));
  return internal::with_results(
      options,
      [&] { return state.grad_w<T>(q_grad, s, state.gradients_by_group, options, ledger); },
      [&] {
        auto to = gradients.begin();
        for (const sparse::Csr<float>& of_group : state.gradients_by_group)
          to = std::copy(of_group.values.begin(), of_group.values.end(), to);
      });
}

template <class T>
device::Ledger FullyConnected::forward(MatrixView<const T> s, MatrixView<T> q) {
  device::Ledger ledger;
  static_cast<void>(forward<T>(s, q, {}, ledger));  // it cannot be stopped
  return ledger;
}

template <class T>
device::Ledger FullyConnected::grad_a(MatrixView<const T> q_grad, MatrixView<T> s_grad) {
  device::Ledger ledger;
  static_cast<void>(grad_a<T>(q_grad, s_grad, {}, ledger));
  return ledger;
}

template <class T>
device::Ledger FullyConnected::grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                                      std::span<sparse::Csr<float>> gradients) {
  device::Ledger ledger;
  static_cast<void>(grad_w<T>(q_grad, s, gradients, {}, ledger));
  return ledger;
}

template <class T>
device::Ledger FullyConnected::grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                                      std::span<float> gradients) {
  device::Ledger ledger;
  static_cast<void>(grad_w<T>(q_grad, s, gradients, {}, ledger));
  return ledger;
}

template <class T>
device::Ledger FullyConnected::grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                                      sparse::Csr<float>& gradient) {
  return grad_w<T>(q_grad, s, std::span(&gradient, 1));
}

const Program& FullyConnected::program(Pass pass) const {
  const auto [layout, own_pass] = state_->runs(pass);
  return layout->program(own_pass);
}

device::MemoryUse FullyConnected::memory(Pass pass) const {
  const auto [layout, own_pass] = state_->runs(pass);
  return layout->memory(own_pass);
}

device::MemoryUse memory_use(const Problem& problem, const planner::Plan& plan,
                             const device::Machine& machine, Pass pass) {
  check_problem(problem);
  if (plan.backward.empty() || (pass != Pass::GradA && !plan.runs_transposed(pass)))
    return internal::memory_of_one(problem, plan, machine, pass);
  const auto [forward_layout, transposed_layout] =
      planner::two_problems(problem, plan.runs_transposed(Pass::GradW));
  return internal::memory_of_one(transposed_layout, plan.backward.front(), machine,
                                 pass == Pass::GradA ? Pass::Fwd : pass);
}

std::int64_t FullyConnected::batch() const { return state_->problem.size.z; }

std::int64_t FullyConnected::values() const {
  const internal::LayerWeights& weights = state_->forward_layout.weights();
  std::int64_t sum = 0;
  for (std::int64_t g = 0; !weights.empty() && g < state_->problem.size.g; ++g)
    sum += std::ssize(weights.given(g)->values);
  return sum;
}

template <class T>
std::span<const T> FullyConnected::encoded_values(std::int64_t group) const {
  state_->check_call<T>(true, "encoded_values");
  const partitioner::Buckets& of_group = buckets(group);
  const std::int64_t count = of_group.grid.buckets() * of_group.values_per_bucket();
  const auto* const all =
      reinterpret_cast<const T*>(state_->forward_layout.weights().image().values);
  return {all + group * count, std::size_t(count)};
}

template <class T>
std::span<const T> FullyConnected::encoded_gradients(std::span<const float> gradients,
                                                     std::int64_t group) {
  const auto call = state_->caller.enter("encoded_gradients");
  const std::span<T> encoded = state_->encoded_as<T>(std::ssize(encoded_values<T>(group)));
  const partitioner::Buckets& order = buckets(group);
  const partitioner::TileGrid& grid = order.grid;
  const sparse::Csr<float>& given = weights(group);
  if (gradients.size() != given.values.size())
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("encoded_gradients: {} gradients are given; group {} has {} values",
                            gradients.size(), group, given.values.size()));
  if (given.block == grid.block && given.rows == grid.size.x && given.cols == grid.size.y) {
    partitioner::refill<T, float>(order, gradients, encoded, *state_->executor);
    return encoded;
  }
  sparse::CheckedCsr<float> matrix = state_->forward_layout.weights().given(group);
  std::copy(gradients.begin(), gradients.end(), matrix.mutable_values().begin());
  matrix = internal::in_grid(matrix, grid);
  partitioner::refill<T, float>(order, matrix->values, encoded, *state_->executor);
  return encoded;
}

template <class T>
void FullyConnected::set_encoded_values(std::span<const T> values, std::int64_t group) {
  const auto call = state_->caller.enter("set_encoded_values");
  const std::int64_t count = std::ssize(encoded_values<T>(group));
  if (std::ssize(values) != count)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("set_encoded_values: {} values are given; the buckets of a group hold "
                            "{} with padding",
                            values.size(), count));
  const std::span<T> all = state_->encoded_as<T>((group + 1) * count);
  std::copy(values.begin(), values.end(), all.begin() + group * count);
  sparse::Csr<float> decoded;
  state_->forward_layout.weights().to_given<T>(all, group, decoded);
  state_->set_values(decoded.values, group);
}

const partitioner::Buckets& FullyConnected::buckets(std::int64_t group) const {
  return state_->forward_layout.weights().buckets(group);
}

const partitioner::Buckets& FullyConnected::buckets_of(Pass pass, std::int64_t group) const {
  return state_->runs(pass).first->weights().buckets(group);
}

Bytes FullyConnected::pattern_bytes() const {
  if (state_->forward_layout.weights().empty()) return {};
  const Bytes first = state_->forward_layout.weights().pattern_bytes().all();
  return state_->transposed_layout ? first + state_->transposed_layout->pattern_bytes() : first;
}

Bytes FullyConnected::pattern_change_bytes() const {
  if (state_->forward_layout.weights().empty()) return {};
  const Bytes first = state_->forward_layout.weights().pattern_change_bytes().all();
  return state_->transposed_layout ? first + state_->transposed_layout->pattern_change_bytes()
                                   : first;
}

partitioner::SpillStats FullyConnected::spill() const {
  return state_->forward_layout.weights().spill();
}

partitioner::Travel FullyConnected::travel() const {
  buckets(0);  // throws if there are no weights
  return state_->forward_layout.weights().image().travel();
}

const sparse::Csr<float>& FullyConnected::weights(std::int64_t group) const {
  return *state_->forward_layout.weights().given(group);
}

Bytes FullyConnected::high_water() const { return state_->high_water(); }

#define TESSERA_PASSES(T)                                                                          \
  template device::Ledger FullyConnected::forward(MatrixView<const T>, MatrixView<T>);             \
  template device::Ledger FullyConnected::grad_a(MatrixView<const T>, MatrixView<T>);              \
  template device::Ledger FullyConnected::grad_w(MatrixView<const T>, MatrixView<const T>,         \
                                                 sparse::Csr<float>&);                             \
  template device::Ledger FullyConnected::grad_w(MatrixView<const T>, MatrixView<const T>,         \
                                                 std::span<sparse::Csr<float>>);                   \
  template device::Ledger FullyConnected::grad_w(MatrixView<const T>, MatrixView<const T>,         \
                                                 std::span<float>);                                \
  template std::span<const T> FullyConnected::encoded_values(std::int64_t) const;                  \
  template std::span<const T> FullyConnected::encoded_gradients(std::span<const float>,            \
                                                                std::int64_t);                     \
  template void FullyConnected::set_encoded_values(std::span<const T>, std::int64_t);              \
  template bool FullyConnected::grad_w(MatrixView<const T>, MatrixView<const T>, std::span<float>, \
                                       const RunOptions&, device::Ledger&);                        \
  template bool FullyConnected::forward(MatrixView<const T>, MatrixView<T>, const RunOptions&,     \
                                        device::Ledger&);                                          \
  template bool FullyConnected::grad_a(MatrixView<const T>, MatrixView<T>, const RunOptions&,      \
                                       device::Ledger&);                                           \
  template bool FullyConnected::grad_w(MatrixView<const T>, MatrixView<const T>,                   \
                                       std::span<sparse::Csr<float>>, const RunOptions&,           \
                                       device::Ledger&);
TESSERA_PASSES(float)
TESSERA_PASSES(Half)
TESSERA_PASSES(BFloat16)
#undef TESSERA_PASSES

}  // namespace tessera::runtime
