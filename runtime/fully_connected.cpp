#include "tessera/runtime/fully_connected.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/layer/check_weights.hpp"
#include "tessera/planner/layouts.hpp"
#include "tessera/runtime/internal/fully_connected_state.hpp"
#include "tessera/runtime/internal/layer_calls.hpp"
#include "tessera/runtime/internal/layer_check.hpp"
#include "tessera/runtime/internal/layout_passes.hpp"

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

internal::AnyLayer make_layer(const Problem& problem, const planner::Plan& plan,
                              const device::Machine& machine, device::ExchangeMode mode,
                              Executor& executor) {
  check_problem(problem);
  if (plan.dense) return internal::DenseLayer(problem, *plan.dense, machine, mode, executor);
  return internal::SparseLayer(problem, plan, machine, mode, executor);
}

std::array<std::int64_t, 3> partial_sums_of(const Problem& problem, const planner::Plan& plan) {
  std::array<std::int64_t, 3> sums{};
  for (const Pass pass : passes_of(problem))
    sums[std::size_t(pass)] = planner::partial_sums(plan, pass);
  return sums;
}

}  // namespace

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
    : LayerOf(std::make_unique<State>(problem, make_layer(problem, plan, machine, mode, executor),
                                      machine, mode,
                                      internal::resident_bytes(plan, problem.data_type, machine),
                                      executor, partial_sums_of(problem, plan))) {}

std::optional<partitioner::Misfit> FullyConnected::set_weights(
    std::span<const sparse::CheckedCsr<float>> weights, const partitioner::EncodeOptions& options) {
  const auto call = state().caller.enter("set_weights");
  layer::check_weights(state().problem, weights);
  return state().set_weights(weights, options);
}

std::optional<partitioner::Misfit> FullyConnected::set_weights(
    const sparse::CheckedCsr<float>& weights, const partitioner::EncodeOptions& options) {
  return set_weights(std::span(&weights, 1), options);
}

const partitioner::LoadCost& FullyConnected::load_cost() const {
  return state().buckets_layer("load_cost").forward_layout().load_cost();
}

namespace {

// A change that is encoded in the layer's scratch memory, which holds one at a time.
struct PreparedBuckets : layer::PreparedUpdate::State {
  std::int64_t group = 0;
};

}  // namespace

std::optional<partitioner::Misfit> FullyConnected::State::set_weights(
    std::span<const sparse::CheckedCsr<float>> weights, const partitioner::EncodeOptions& options) {
  version = layer::new_number();
  return with_layer([&](auto& any) { return any.set_weights(weights, options); });
}

void FullyConnected::State::set_values(std::span<const float> values, std::int64_t group) {
  with_layer([&](auto& any) { any.set_values(values, group); });
}

std::unique_ptr<layer::PreparedUpdate::State> FullyConnected::State::prepare(
    const sparse::PatternChange& change, std::int64_t group) {
  auto made = std::make_unique<PreparedBuckets>();
  made->change = sparse::place_change(*given(group), change);
  version = layer::new_number();  // a change that was prepared before is lost
  made->misfit = with_layer([&](auto& any) { return any.encode_update(change, group); });
  made->group = group;
  return made;
}

void FullyConnected::State::commit(layer::PreparedUpdate::State& update) {
  const std::int64_t group = static_cast<const PreparedBuckets&>(update).group;
  with_layer([&](auto& any) { any.take_update(group); });
}

std::optional<partitioner::Misfit> FullyConnected::State::update_weights(
    const sparse::PatternChange& change, std::int64_t group) {
  return with_layer([&](auto& any) {
    std::optional<partitioner::Misfit> misfit = any.encode_update(change, group);
    if (!misfit) any.take_update(group);
    return misfit;
  });
}

verify::Rounding FullyConnected::State::rounding(Pass pass) const {
  return {problem.data_type, problem.partials_type, partial_sums[std::size_t(pass)]};
}

bool FullyConnected::State::compute(Pass pass, const layer::Operands& operands,
                                    const PassOptions& options, device::Ledger& ledger) {
  return internal::run_on_tiles(*this, pass, operands, options, ledger);
}

layer::LayerFacts FullyConnected::State::facts() const {
  const Dims& size = problem.size;
  return {.problem = problem,
          .passes = {true, has(Pass::GradA), has(Pass::GradW)},
          .has_weights = !empty(),
          .values = values(),
          .output_rows = size.g * size.x,
          .input_rows = size.g * size.y};
}

const Program& FullyConnected::program(Pass pass) const {
  return state().with_layer(
      [pass](const auto& any) -> const Program& { return any.program(pass); });
}

device::MemoryUse FullyConnected::memory(Pass pass) const {
  return state().with_layer([pass](const auto& any) { return any.memory(pass); });
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

std::int64_t FullyConnected::State::values() const {
  std::int64_t sum = 0;
  for (std::int64_t g = 0; !empty() && g < problem.size.g; ++g) sum += std::ssize(given(g)->values);
  return sum;
}

template <class T>
std::span<const T> FullyConnected::encoded_values(std::int64_t group) const {
  state().check_call<T>("encoded_values");
  const partitioner::Buckets& of_group = buckets(group);
  const std::int64_t count = of_group.grid.buckets() * of_group.values_per_bucket();
  const internal::SparseLayer& layer = state().buckets_layer("encoded_values");
  const auto* const all =
      reinterpret_cast<const T*>(layer.forward_layout().weights().image().values);
  return {all + group * count, std::size_t(count)};
}

std::vector<std::int64_t> FullyConnected::value_positions(std::int64_t group) const {
  static_cast<void>(buckets(group));  // refuses a group that there is not
  return state()
      .buckets_layer("value_positions")
      .forward_layout()
      .weights()
      .bucket_positions(group);
}

const partitioner::Buckets& FullyConnected::buckets(std::int64_t group) const {
  return state().buckets_layer("buckets").forward_layout().weights().buckets(group);
}

const partitioner::Buckets& FullyConnected::buckets_of(Pass pass, std::int64_t group) const {
  return state().buckets_layer("buckets_of").weights_of(pass).buckets(group);
}

Bytes FullyConnected::pattern_bytes() const {
  if (state().empty()) return {};
  return state().with_layer([](const auto& any) { return any.pattern_bytes(); });
}

Bytes FullyConnected::pattern_change_bytes() const {
  if (state().empty()) return {};
  return state().with_layer([](const auto& any) { return any.pattern_change_bytes(); });
}

partitioner::SpillStats FullyConnected::spill() const {
  return state().with_layer([](const auto& any) { return any.spill(); });
}

partitioner::Travel FullyConnected::travel() const {
  return state().with_layer([](const auto& any) { return any.travel(); });
}

Bytes FullyConnected::high_water() const {
  return state().with_layer([](const auto& any) { return any.high_water(); });
}

template std::span<const float> FullyConnected::encoded_values(std::int64_t) const;
template std::span<const Half> FullyConnected::encoded_values(std::int64_t) const;
template std::span<const BFloat16> FullyConnected::encoded_values(std::int64_t) const;

}  // namespace tessera::runtime
