#include "tessera/runtime/fully_connected.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/one_caller.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/planner/layouts.hpp"
#include "tessera/runtime/dense_grad_w.hpp"
#include "tessera/runtime/internal/dense_layer.hpp"
#include "tessera/runtime/internal/layer_calls.hpp"
#include "tessera/runtime/internal/layer_check.hpp"
#include "tessera/runtime/internal/layout_passes.hpp"
#include "tessera/runtime/internal/sparse_layer.hpp"

namespace tessera::runtime {

partitioner::TileGrid tile_grid(const Problem& problem, const planner::Plan& plan,
                                const device::Machine& machine) {
  if (plan.dense)
    throw Error(ErrorCode::InvalidArgument, "a dense plan without buckets has no grid of buckets");
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

namespace {

using AnyLayer = std::variant<internal::SparseLayer, internal::DenseLayer>;

AnyLayer make_layer(const Problem& problem, const planner::Plan& plan,
                    const device::Machine& machine, device::ExchangeMode mode, Executor& executor) {
  check_problem(problem);
  if (plan.dense) return internal::DenseLayer(problem, *plan.dense, machine, mode, executor);
  return internal::SparseLayer(problem, plan, machine, mode, executor);
}

}  // namespace

struct FullyConnected::State {
  Problem problem;
  AnyLayer layer;
  device::Machine machine;
  device::ExchangeMode mode = device::ExchangeMode::Share;
  Bytes buckets;  // of each tile: what a search leaves free
  Executor* executor = nullptr;
  // Scratch that is reused from call to call: gradients, and values or gradients in bucket order.
  std::vector<sparse::Csr<float>> gradients_by_group = {};
  std::vector<std::byte> encoded = {};
  OneCaller caller = {};

  // The last search for large gradients, and the number of places that it was planned for.
  std::optional<DenseGradW> search = {};
  std::int64_t searched = 0;

  // Returns the search for k places of one group.
  DenseGradW& search_for_places(std::int64_t k);

  // Calls `run` with the sparse or the dense layer.
  template <class Run>
  decltype(auto) with_layer(Run&& run) {
    return std::visit(std::forward<Run>(run), layer);
  }
  template <class Run>
  decltype(auto) with_layer(Run&& run) const {
    return std::visit(std::forward<Run>(run), layer);
  }

  // Returns the layer with buckets. Throws Error{InvalidArgument} if the plan is dense.
  internal::SparseLayer& buckets_layer(const char* call);

  bool has(Pass pass) const {
    return with_layer([pass](const auto& any) { return any.has(pass); });
  }
  bool empty() const {
    return with_layer([](const auto& any) { return any.empty(); });
  }
  const sparse::CheckedCsr<float>& given(std::int64_t group) const {
    return with_layer(
        [group](const auto& any) -> const sparse::CheckedCsr<float>& { return any.given(group); });
  }

  void set_values(std::span<const float> values, std::int64_t group) {
    with_layer([&](auto& any) { any.set_values(values, group); });
  }
  std::int64_t values() const;

  template <class T>
  bool product(Pass pass, MatrixView<const T> in, MatrixView<T> out, const RunOptions& options,
               device::Ledger& ledger) {
    return with_layer(
        [&](auto& any) { return any.template product<T>(pass, in, out, options, ledger); });
  }
  template <class T>
  bool gradient(MatrixView<const T> q_grad, MatrixView<const T> s,
                std::span<sparse::Csr<float>> gradients, const RunOptions& options,
                device::Ledger& ledger) {
    return with_layer(
        [&](auto& any) { return any.template gradient<T>(q_grad, s, gradients, options, ledger); });
  }

  // Resizes `encoded` to `count` values and returns them.
  template <class T>
  std::span<T> encoded_as(std::int64_t count) {
    encoded.resize(std::size_t(count) * sizeof(T));
    return {reinterpret_cast<T*>(encoded.data()), std::size_t(count)};
  }

  // Throws Error{InvalidArgument} for operands of another type, a pass that the layer was planned
  // without, and a call before the first set_weights.
  template <class T>
  void check_call(Pass pass, const char* name) const {
    if (data_type_of<T>() != problem.data_type)
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("{}: operands are {} but the layer is {}", name,
                              to_string(data_type_of<T>()), to_string(problem.data_type)));
    if (pass != Pass::Fwd && !has(pass))
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("{}: the plan of this layer does not include this pass", name));
    if (empty())
      throw Error(ErrorCode::InvalidArgument, fmt::format("{}: call set_weights first", name));
  }
};

internal::SparseLayer& FullyConnected::State::buckets_layer(const char* call) {
  if (auto* const sparse = std::get_if<internal::SparseLayer>(&layer)) return *sparse;
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("{}: the plan of this layer is dense and has no buckets; plan with "
                          "useDense false",
                          call));
}

FullyConnected::FullyConnected(const Problem& problem, const planner::Plan& plan,
                               const device::Machine& machine, device::ExchangeMode mode,
                               Executor& executor)
    : state_(std::make_unique<State>(
          State{problem, make_layer(problem, plan, machine, mode, executor), machine, mode,
                internal::resident_bytes(plan, problem.data_type, machine), &executor})) {}

FullyConnected::~FullyConnected() = default;
FullyConnected::FullyConnected(FullyConnected&&) noexcept = default;
FullyConnected& FullyConnected::operator=(FullyConnected&&) noexcept = default;

std::optional<partitioner::Misfit> FullyConnected::set_weights(
    std::span<const sparse::CheckedCsr<float>> weights, const partitioner::EncodeOptions& options) {
  const auto call = state_->caller.enter("set_weights");
  return state_->with_layer([&](auto& any) { return any.set_weights(weights, options); });
}

const partitioner::LoadCost& FullyConnected::load_cost() const {
  return state_->buckets_layer("load_cost").forward_layout().load_cost();
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
  return state_->with_layer([&](auto& any) { return any.update_weights(change, group); });
}

void FullyConnected::set_values(std::span<const float> values, std::int64_t group) {
  const auto call = state_->caller.enter("set_values");
  state_->set_values(values, group);
}

template <class T>
bool FullyConnected::forward(MatrixView<const T> s, MatrixView<T> q, const RunOptions& options,
                             device::Ledger& ledger) {
  return internal::call_product<T>(*state_, Pass::Fwd, s, q, options, ledger);
}

template <class T>
bool FullyConnected::grad_a(MatrixView<const T> q_grad, MatrixView<T> s_grad,
                            const RunOptions& options, device::Ledger& ledger) {
  return internal::call_product<T>(*state_, Pass::GradA, q_grad, s_grad, options, ledger);
}

template <class T>
bool FullyConnected::grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                            std::span<sparse::Csr<float>> gradients, const RunOptions& options,
                            device::Ledger& ledger) {
  return internal::call_gradient<T>(*state_, q_grad, s, gradients, options, ledger);
}

template <class T>
bool FullyConnected::grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                            std::span<float> gradients, const RunOptions& options,
                            device::Ledger& ledger) {
  return internal::call_gradient<T>(*state_, q_grad, s, gradients, options, ledger);
}

template <class T>
device::Ledger FullyConnected::forward(MatrixView<const T> s, MatrixView<T> q) {
  return internal::ledger_of([&](device::Ledger& ledger) { return forward<T>(s, q, {}, ledger); });
}

template <class T>
device::Ledger FullyConnected::grad_a(MatrixView<const T> q_grad, MatrixView<T> s_grad) {
  return internal::ledger_of(
      [&](device::Ledger& ledger) { return grad_a<T>(q_grad, s_grad, {}, ledger); });
}

template <class T>
device::Ledger FullyConnected::grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                                      std::span<float> gradients) {
  return internal::ledger_of(
      [&](device::Ledger& ledger) { return grad_w<T>(q_grad, s, gradients, {}, ledger); });
}

template <class T>
device::Ledger FullyConnected::grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                                      std::span<sparse::Csr<float>> gradients) {
  return internal::ledger_of(
      [&](device::Ledger& ledger) { return grad_w<T>(q_grad, s, gradients, {}, ledger); });
}

template <class T>
device::Ledger FullyConnected::grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                                      sparse::Csr<float>& gradient) {
  return grad_w<T>(q_grad, s, std::span(&gradient, 1));
}

DenseGradW& FullyConnected::State::search_for_places(std::int64_t k) {
  if (search && searched == k) return *search;
  Problem one = problem;
  one.size.g = 1;
  one.grad_w = true;
  one.partials_type = DataType::Float;
  device::Machine beside_buckets = machine;
  beside_buckets.tile_memory -= buckets;
  search.reset();  // its memory is free before that of the next one is allocated
  search.emplace(search_for(one, k, beside_buckets, mode, *executor));
  searched = k;
  return *search;
}

template <class T>
bool FullyConnected::largest_gradients(std::int64_t k, MatrixView<const T> q_grad,
                                       MatrixView<const T> s, codelets::BlockScore score,
                                       std::int64_t group, const RunOptions& options,
                                       LargestGradients& found) {
  const auto call = state_->caller.enter("largest_gradients");
  state_->check_call<T>(Pass::Fwd, "largest_gradients");
  const Dims& size = state_->problem.size;
  const sparse::Csr<float>& taken = weights(group);  // refuses a group that there is not
  if (q_grad.rows != size.g * size.x || s.rows != size.g * size.y)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("largest_gradients: q_grad is {} x {} and s is {} x {}; this layer "
                            "needs {} x {} and {} x {}",
                            q_grad.rows, q_grad.cols, s.rows, s.cols, size.g * size.x, size.z,
                            size.g * size.y, size.z));
  found = {};
  if (k == 0) return true;
  // A number out of range is refused by the search, which is planned for one in range.
  const std::int64_t free = taken.block_rows() * taken.block_cols() - taken.blocks();
  const std::int64_t most = std::max<std::int64_t>(free, 1);
  const auto rows_of = [group](MatrixView<const T> all, std::int64_t rows) {
    return all.sub({group * rows, (group + 1) * rows}, {0, all.cols});
  };
  const std::string name = size.g == 1 ? "weights" : fmt::format("weights of group {}", group);
  return state_->search_for_places(std::clamp<std::int64_t>(k, 1, most))
      .largest<T>(taken, k, score, rows_of(q_grad, size.x), rows_of(s, size.y), options, found,
                  name);
}

template <class T>
LargestGradients FullyConnected::largest_gradients(std::int64_t k, MatrixView<const T> q_grad,
                                                   MatrixView<const T> s,
                                                   codelets::BlockScore score, std::int64_t group) {
  LargestGradients found;
  static_cast<void>(largest_gradients<T>(k, q_grad, s, score, group, RunOptions(), found));
  return found;
}

const Program& FullyConnected::program(Pass pass) const {
  return state_->with_layer(
      [pass](const auto& any) -> const Program& { return any.program(pass); });
}

device::MemoryUse FullyConnected::memory(Pass pass) const {
  return state_->with_layer([pass](const auto& any) { return any.memory(pass); });
}

device::MemoryUse memory_use(const Problem& problem, const planner::Plan& plan,
                             const device::Machine& machine, Pass pass) {
  check_problem(problem);
  if (plan.dense) return DensePass::memory_of(*plan.dense, pass, machine);
  if (plan.backward.empty() || (pass != Pass::GradA && !plan.runs_transposed(pass)))
    return internal::memory_of_one(problem, plan, machine, pass);
  const auto [forward_layout, transposed_layout] =
      planner::two_problems(problem, plan.runs_transposed(Pass::GradW));
  return internal::memory_of_one(transposed_layout, plan.backward.front(), machine,
                                 pass == Pass::GradA ? Pass::Fwd : pass);
}

std::int64_t FullyConnected::batch() const { return state_->problem.size.z; }

std::int64_t FullyConnected::State::values() const {
  std::int64_t sum = 0;
  for (std::int64_t g = 0; !empty() && g < problem.size.g; ++g) sum += std::ssize(given(g)->values);
  return sum;
}

std::int64_t FullyConnected::values() const { return state_->values(); }

template <class T>
std::span<const T> FullyConnected::encoded_values(std::int64_t group) const {
  state_->check_call<T>(Pass::Fwd, "encoded_values");
  const partitioner::Buckets& of_group = buckets(group);
  const std::int64_t count = of_group.grid.buckets() * of_group.values_per_bucket();
  const internal::SparseLayer& layer = state_->buckets_layer("encoded_values");
  const auto* const all =
      reinterpret_cast<const T*>(layer.forward_layout().weights().image().values);
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
  sparse::CheckedCsr<float> matrix = state_->given(group);
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
  state_->buckets_layer("set_encoded_values")
      .forward_layout()
      .weights()
      .to_given<T>(all, group, decoded);
  state_->set_values(decoded.values, group);
}

std::vector<std::int64_t> FullyConnected::value_positions(std::int64_t group) const {
  static_cast<void>(buckets(group));  // refuses a group that there is not
  return state_->buckets_layer("value_positions")
      .forward_layout()
      .weights()
      .bucket_positions(group);
}

const partitioner::Buckets& FullyConnected::buckets(std::int64_t group) const {
  return state_->buckets_layer("buckets").forward_layout().weights().buckets(group);
}

const partitioner::Buckets& FullyConnected::buckets_of(Pass pass, std::int64_t group) const {
  return state_->buckets_layer("buckets_of").weights_of(pass).buckets(group);
}

Bytes FullyConnected::pattern_bytes() const {
  if (state_->empty()) return {};
  return state_->with_layer([](const auto& any) { return any.pattern_bytes(); });
}

Bytes FullyConnected::pattern_change_bytes() const {
  if (state_->empty()) return {};
  return state_->with_layer([](const auto& any) { return any.pattern_change_bytes(); });
}

partitioner::SpillStats FullyConnected::spill() const {
  return state_->with_layer([](const auto& any) { return any.spill(); });
}

partitioner::Travel FullyConnected::travel() const {
  return state_->with_layer([](const auto& any) { return any.travel(); });
}

const sparse::Csr<float>& FullyConnected::weights(std::int64_t group) const {
  return *state_->given(group);
}

Bytes FullyConnected::high_water() const {
  return state_->with_layer([](const auto& any) { return any.high_water(); });
}

#define TESSERA_PASSES(T)                                                                          \
  template device::Ledger FullyConnected::forward(MatrixView<const T>, MatrixView<T>);             \
  template device::Ledger FullyConnected::grad_a(MatrixView<const T>, MatrixView<T>);              \
  template device::Ledger FullyConnected::grad_w(MatrixView<const T>, MatrixView<const T>,         \
                                                 sparse::Csr<float>&);                             \
  template device::Ledger FullyConnected::grad_w(MatrixView<const T>, MatrixView<const T>,         \
                                                 std::span<sparse::Csr<float>>);                   \
  template device::Ledger FullyConnected::grad_w(MatrixView<const T>, MatrixView<const T>,         \
                                                 std::span<float>);                                \
  template LargestGradients FullyConnected::largest_gradients(                                     \
      std::int64_t, MatrixView<const T>, MatrixView<const T>, codelets::BlockScore, std::int64_t); \
  template bool FullyConnected::largest_gradients(                                                 \
      std::int64_t, MatrixView<const T>, MatrixView<const T>, codelets::BlockScore, std::int64_t,  \
      const RunOptions&, LargestGradients&);                                                       \
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
