#include "tessera/runtime/fully_connected.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/layer/check_weights.hpp"
#include "tessera/planner/homes.hpp"
#include "tessera/runtime/internal/dense_layer.hpp"
#include "tessera/runtime/internal/layer_check.hpp"
#include "tessera/runtime/internal/sparse_layer.hpp"

namespace tessera::runtime {

partitioner::TileGrid tile_grid(const Problem& problem, const planner::Plan& plan,
                                const device::Machine& machine) {
  if (plan.dense) throw_invalid("a dense plan without buckets has no grid of buckets");
  const Dims& parts = plan.partition;
  return {.size = planner::padded_size(problem, plan),
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

std::unique_ptr<FullyConnected::State> make_layer(const Problem& problem, const planner::Plan& plan,
                                                  const device::Machine& machine,
                                                  device::ExchangeMode mode, Executor& executor) {
  check_problem(problem);
  if (plan.dense)
    return std::make_unique<internal::DenseLayer>(problem, plan, machine, mode, executor);
  return std::make_unique<internal::SparseLayer>(problem, plan, machine, mode, executor);
}

}  // namespace

FullyConnected::State::State(const Problem& of, const planner::Plan& plan,
                             const device::Machine& on, device::ExchangeMode how, Executor& threads)
    : LayerOnTiles(of, on, threads),
      mode(how),
      buckets(internal::resident_bytes(plan, of.data_type, on)) {}

internal::SparseLayer& FullyConnected::State::buckets_layer(const char* call) {
  if (auto* const sparse = dynamic_cast<internal::SparseLayer*>(this)) return *sparse;
  throw_invalid(fmt::format(
      "{}: the plan of this layer is dense and has no buckets; plan with useDense false", call));
}

FullyConnected::FullyConnected(const Problem& problem, const planner::Plan& plan,
                               const device::Machine& machine, device::ExchangeMode mode,
                               Executor& executor)
    : LayerOf(make_layer(problem, plan, machine, mode, executor)) {}

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
  return state().buckets_layer("load_cost").weights().forward.load_cost;
}

namespace {

// A change that is encoded in the layer's scratch memory, which holds one at a time.
struct PreparedBuckets : layer::PreparedUpdate::State {
  std::int64_t group = 0;
};

}  // namespace

std::optional<partitioner::Misfit> FullyConnected::State::set_weights(
    std::span<const sparse::CheckedCsr<float>> weights, const partitioner::EncodeOptions& options) {
  change();
  return encode(weights, options);
}

void FullyConnected::State::set_values(std::span<const float> values, std::int64_t group) {
  change();
  put_values(values, group);
}

void FullyConnected::State::restore_weights(const partitioner::SavedWeights& saved) {
  change();
  buckets_layer("restore_weights").restore(saved);
}

std::unique_ptr<layer::PreparedUpdate::State> FullyConnected::State::prepare(
    const sparse::PatternChange& change, std::int64_t group) {
  auto made = std::make_unique<PreparedBuckets>();
  made->change = sparse::place_change(*given(group), change);
  version = layer::new_number();  // a change that was prepared before is lost
  made->misfit = encode_update(change, group);
  made->group = group;
  return made;
}

void FullyConnected::State::commit(layer::PreparedUpdate::State& update) {
  const std::int64_t group = static_cast<const PreparedBuckets&>(update).group;
  change();
  take_update(group);
}

std::optional<partitioner::Misfit> FullyConnected::State::update_weights(
    const sparse::PatternChange& change, std::int64_t group) {
  this->change();
  std::optional<partitioner::Misfit> misfit = encode_update(change, group);
  if (!misfit) take_update(group);
  return misfit;
}

const Program& FullyConnected::program(Pass pass) const { return state().program(pass); }
device::MemoryUse FullyConnected::memory(Pass pass) const { return state().memory(pass); }

template <class T>
std::span<const T> FullyConnected::encoded_values(std::int64_t group) const {
  state().check_call<T>("encoded_values");
  const partitioner::Buckets& of_group = buckets(group);
  const std::int64_t count = of_group.grid.buckets() * of_group.values_per_bucket();
  const internal::SparseLayer& layer = state().buckets_layer("encoded_values");
  const auto* const all =
      reinterpret_cast<const T*>(layer.weights().forward.weights.image().values);
  return {all + group * count, std::size_t(count)};
}

std::vector<std::int64_t> FullyConnected::value_positions(std::int64_t group) const {
  static_cast<void>(buckets(group));  // refuses a group that there is not
  return state().buckets_layer("value_positions").weights().forward.weights.bucket_positions(group);
}

const partitioner::Buckets& FullyConnected::buckets(std::int64_t group) const {
  const internal::SparseLayer& layer = state().buckets_layer("buckets");
  check_group(group);
  return layer.weights().forward.weights.buckets(group);
}

const partitioner::Buckets& FullyConnected::buckets_of(Pass pass, std::int64_t group) const {
  const internal::SparseLayer& layer = state().buckets_layer("buckets_of");
  check_group(group);
  return layer.weights().layout_of(pass).weights.buckets(group);
}

Bytes FullyConnected::pattern_bytes() const {
  return state().empty() ? Bytes() : state().pattern_bytes();
}
partitioner::SpillStats FullyConnected::spill() const {
  check_group(0);
  return state().spill();
}

partitioner::Travel FullyConnected::travel() const {
  check_group(0);
  return state().travel();
}

Bytes FullyConnected::high_water() const { return state().high_water(); }

template std::span<const float> FullyConnected::encoded_values(std::int64_t) const;
template std::span<const Half> FullyConnected::encoded_values(std::int64_t) const;
template std::span<const BFloat16> FullyConnected::encoded_values(std::int64_t) const;

}  // namespace tessera::runtime
