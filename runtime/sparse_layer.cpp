#include "tessera/runtime/internal/sparse_layer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/planner/layouts.hpp"
#include "tessera/runtime/internal/joined_runs.hpp"
#include "tessera/runtime/internal/layer_check.hpp"

namespace tessera::runtime::internal {
namespace {

using device::ByteRows;

// Returns the layout of transpose(R) if the plan has one.
std::optional<LayoutPasses> second_layout(const Problem& problem, const planner::Plan& plan,
                                          const device::Machine& machine, device::ExchangeMode mode,
                                          Executor& executor) {
  std::optional<LayoutPasses> layout;
  if (!plan.backward.empty())
    layout.emplace(planner::two_problems(problem, plan.runs_transposed(Pass::GradW)).transposed,
                   plan.backward.front(), machine, mode, executor);
  return layout;
}

}  // namespace

Problem forward_problem(const Problem& problem, const planner::Plan& plan) {
  return plan.backward.empty()
             ? problem
             : planner::two_problems(problem, plan.runs_transposed(Pass::GradW)).forward;
}

SparseLayer::SparseLayer(const Problem& of, const planner::Plan& plan, const device::Machine& on,
                         device::ExchangeMode how, Executor& threads)
    : State(of, plan, on, how, threads),
      forward_(forward_problem(of, plan), plan, on, how, threads),
      transposed_(second_layout(of, plan, on, how, threads)),
      weights_(forward_.weights(), transposed_ ? &transposed_->weights() : nullptr,
               transposed_ ? transposed_->load_cost() : partitioner::LoadCost()) {
  if (!transposed_) return;
  rehome_.emplace(on, how, threads, RehomeSpec{forward_.grid(), transposed_->grid(), of.size.g});
  if (const Bytes most = high_water(); most > on.tile_memory)
    throw Error(ErrorCode::LimitExceeded,
                fmt::format("a tile needs {} bytes for the buckets of both layouts, but {} has {} "
                            "per tile; plan with perPassPlans false",
                            most.value, on.name, on.tile_memory.value));
}

std::pair<const LayoutPasses*, Pass> SparseLayer::runs(Pass pass) const {
  if (transposed_ && pass == Pass::GradA) return {&*transposed_, Pass::Fwd};
  if (transposed_ && pass == Pass::GradW && transposed_->has(pass)) return {&*transposed_, pass};
  return {&forward_, pass};
}

bool SparseLayer::has(Pass pass) const {
  const auto [layout, own_pass] = runs(pass);
  return layout->has(own_pass);
}

verify::Rounding SparseLayer::rounding(Pass pass) const {
  const auto [layout, own_pass] = runs(pass);
  return layout->rounding(own_pass);
}

const Program& SparseLayer::program(Pass pass) const {
  const auto [layout, own_pass] = runs(pass);
  return layout->program(own_pass);
}

device::MemoryUse SparseLayer::memory(Pass pass) const {
  const auto [layout, own_pass] = runs(pass);
  return layout->memory(own_pass);
}

std::optional<partitioner::Misfit> SparseLayer::encode(
    std::span<const sparse::CheckedCsr<float>> weights, const partitioner::EncodeOptions& options) {
  auto misfit = weights_.set(weights, options);
  if (!misfit) has_tables_ = false;
  return misfit;
}

void SparseLayer::restore(const partitioner::SavedWeights& saved) {
  weights_.restore(saved);
  has_tables_ = false;
}

std::optional<partitioner::Misfit> SparseLayer::encode_update(const sparse::PatternChange& change,
                                                              std::int64_t group) {
  return weights_.encode_update(change, group);
}

void SparseLayer::take_update(std::int64_t group) {
  weights_.take_update(group);
  has_tables_ = false;
}

void SparseLayer::put_values(std::span<const float> values, std::int64_t group) {
  weights_.set_values(values, group);
}

Dims SparseLayer::padded(Pass pass) const {
  const Dims& size = runs(pass).first->grid().size;
  return runs_transposed(pass) ? Dims{size.g, size.y, size.x, size.z} : size;
}

verify::MemoryDamage SparseLayer::damage(Pass pass) const {
  const auto [layout, own_pass] = runs(pass);
  const bool moved = runs_transposed(pass) && pass == Pass::GradA;
  return memory_damage({moved ? rehome_->damage() : device::Damage(), layout->damage(own_pass)});
}

void SparseLayer::make_tables() {
  if (has_tables_) return;
  for (std::int64_t g = 0; g < problem.size.g; ++g) {
    const EncodedWeights::Positions positions = weights_.positions(g);
    (*rehome_)->tables.set_pattern(g, positions.first, positions.second);
  }
  has_tables_ = true;
}

bool SparseLayer::transposed_product(ByteRows in, ByteRows out, const PassOptions& options,
                                     device::Ledger& ledger) {
  make_tables();
  RunSeries series(options, ledger, std::move(own_));
  bool finished = series.run([&](const PassOptions& own, device::Ledger& of_run) {
    return rehome_->run(own, of_run, forward_.weights().image().values);
  });
  series.forget_stages();
  finished = finished && series.run([&](const PassOptions& own, device::Ledger& of_run) {
    return transposed_->product(Pass::Fwd, (*rehome_)->result.data(), in, out, own, of_run);
  });
  own_ = std::move(series.scratch());
  return finished;
}

bool SparseLayer::product(Pass pass, ByteRows in, ByteRows out, const PassOptions& options,
                          device::Ledger& ledger) {
  if (runs_transposed(pass)) return transposed_product(in, out, options, ledger);
  return forward_.product(pass, forward_.weights().image().values, in, out, options, ledger);
}

bool SparseLayer::gradient(ByteRows q_grad, ByteRows s, std::span<float> gradients,
                           const PassOptions& options, device::Ledger& ledger) {
  if (!runs_transposed(Pass::GradW))
    return forward_.gradient(q_grad, s, gradients, options, ledger);
  // transpose(dR) = S * transpose(dQ), so this layout computes its gradient with operands swapped.
  turned_.resize(gradients.size());
  if (!transposed_->gradient(s, q_grad, turned_, options, ledger)) return false;
  weights_.turn_back(turned_, gradients);
  return true;
}

// The buckets of both layouts, and the table by which values move between them, are on a tile all
// the time.
Bytes SparseLayer::high_water() const {
  if (!transposed_) return forward_.high_water();
  const Bytes table = Bytes((*rehome_)->table_bytes());
  return std::max({forward_.high_water() + transposed_->bucket_bytes() + table,
                   transposed_->high_water() + forward_.bucket_bytes() + table,
                   rehome_->high_water() + forward_.word_bytes() + transposed_->word_bytes()});
}

Bytes SparseLayer::sent(const PatternBytes& layout) const {
  const std::int64_t tiles = transposed_->grid().buckets() * problem.size.g;
  return layout.words + layout.travel + Bytes(tiles * (*rehome_)->table_bytes());
}

Bytes SparseLayer::pattern_bytes() const {
  const Bytes first = forward_.weights().pattern_bytes().all();
  return transposed_ ? first + sent(transposed_->weights().pattern_bytes()) : first;
}

Bytes SparseLayer::pattern_change_bytes() const {
  const Bytes first = forward_.weights().pattern_change_bytes().all();
  return transposed_ ? first + sent(transposed_->weights().pattern_change_bytes()) : first;
}

partitioner::Travel SparseLayer::travel() const { return forward_.weights().image().travel(); }

}  // namespace tessera::runtime::internal
