#include "tessera/runtime/internal/sparse_layer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/base/error.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/planner/layouts.hpp"

namespace tessera::runtime::internal {

Problem forward_problem(const Problem& problem, const planner::Plan& plan) {
  return plan.backward.empty()
             ? problem
             : planner::two_problems(problem, plan.runs_transposed(Pass::GradW)).forward;
}

SparseLayer::SparseLayer(const Problem& problem, const planner::Plan& plan,
                         const device::Machine& machine, device::ExchangeMode mode,
                         Executor& executor)
    : problem_(problem), forward_(forward_problem(problem, plan), plan, machine, mode, executor) {
  if (plan.backward.empty()) return;
  LayoutPasses own(planner::two_problems(problem, plan.runs_transposed(Pass::GradW)).transposed,
                   plan.backward.front(), machine, mode, executor);
  RehomePass rehome({forward_.grid(), own.grid(), problem.size.g}, machine, mode, executor);
  transposed_.emplace(std::move(own), std::move(rehome));
  if (const Bytes most = high_water(); most > machine.tile_memory)
    throw Error(ErrorCode::LimitExceeded,
                fmt::format("a tile needs {} bytes for the buckets of both layouts, but {} has {} "
                            "per tile; plan with perPassPlans false",
                            most.value, machine.name, machine.tile_memory.value));
}

std::pair<const LayoutPasses*, Pass> SparseLayer::runs(Pass pass) const {
  if (transposed_ && pass == Pass::GradA) return {&transposed_->layout(), Pass::Fwd};
  if (transposed_ && pass == Pass::GradW && transposed_->runs_grad_w())
    return {&transposed_->layout(), pass};
  return {&forward_, pass};
}

bool SparseLayer::has(Pass pass) const {
  const auto [layout, own_pass] = runs(pass);
  return layout->has(own_pass);
}

std::optional<partitioner::Misfit> SparseLayer::set_weights(
    std::span<const sparse::CheckedCsr<float>> weights, const partitioner::EncodeOptions& options) {
  if (transposed_)
    if (auto misfit = transposed_->encode(weights, options)) return misfit;
  if (auto misfit = forward_.weights().encode(weights, options)) return misfit;
  if (transposed_) transposed_->take();
  forward_.weights().take();
  return std::nullopt;
}

std::optional<partitioner::Misfit> SparseLayer::encode_update(const sparse::PatternChange& change,
                                                              std::int64_t group) {
  if (auto misfit = forward_.weights().encode_update(change, group)) return misfit;
  if (transposed_)
    if (auto misfit = transposed_->encode_update(change, group)) return misfit;
  return std::nullopt;
}

void SparseLayer::take_update(std::int64_t group) {
  forward_.weights().take_update(group);
  if (transposed_) transposed_->take_update(group);
}

void SparseLayer::set_values(std::span<const float> values, std::int64_t group) {
  if (transposed_) {
    forward_.weights().given(group);  // throws for a group that the layer does not have
    transposed_->reserve_values(group);
  }
  forward_.weights().set_values(values, group);
  if (transposed_) transposed_->set_values(values, group);
}

template <class T>
bool SparseLayer::product(Pass pass, MatrixView<const T> in, MatrixView<T> out,
                          const PassOptions& options, device::Ledger& ledger) {
  if (pass == Pass::Fwd || !transposed_) return forward_.product<T>(pass, in, out, options, ledger);
  return transposed_->grad_a<T>(forward_.weights(), in, out, options, ledger);
}

template <class T>
bool SparseLayer::gradient(MatrixView<const T> q_grad, MatrixView<const T> s,
                           std::span<float> gradients, const PassOptions& options,
                           device::Ledger& ledger) {
  if (runs(Pass::GradW).first == &forward_)
    return forward_.gradient<T>(q_grad, s, gradients, options, ledger);
  return transposed_->grad_w<T>(q_grad, s, gradients, options, ledger);
}

const Program& SparseLayer::program(Pass pass) const {
  const auto [layout, own_pass] = runs(pass);
  return layout->program(own_pass);
}

device::MemoryUse SparseLayer::memory(Pass pass) const {
  const auto [layout, own_pass] = runs(pass);
  return layout->memory(own_pass);
}

// The buckets of both layouts, and the table by which values move between them, are on a tile all
// the time.
Bytes SparseLayer::high_water() const {
  if (!transposed_) return forward_.high_water();
  const LayoutPasses& other = transposed_->layout();
  const Bytes table = transposed_->rehome().table_bytes();
  return std::max(
      {forward_.high_water() + other.bucket_bytes() + table,
       other.high_water() + forward_.bucket_bytes() + table,
       transposed_->rehome().high_water() + forward_.word_bytes() + other.word_bytes()});
}

Bytes SparseLayer::pattern_bytes() const {
  const Bytes first = forward_.weights().pattern_bytes().all();
  return transposed_ ? first + transposed_->pattern_bytes() : first;
}

Bytes SparseLayer::pattern_change_bytes() const {
  const Bytes first = forward_.weights().pattern_change_bytes().all();
  return transposed_ ? first + transposed_->pattern_change_bytes() : first;
}

partitioner::Travel SparseLayer::travel() const {
  forward_.weights().buckets(0);  // throws if there are no weights
  return forward_.weights().image().travel();
}

#define TESSERA_SPARSE_LAYER(T)                                                                    \
  template bool SparseLayer::product(Pass, MatrixView<const T>, MatrixView<T>, const PassOptions&, \
                                     device::Ledger&);                                             \
  template bool SparseLayer::gradient(MatrixView<const T>, MatrixView<const T>, std::span<float>,  \
                                      const PassOptions&, device::Ledger&);
TESSERA_SPARSE_LAYER(float)
TESSERA_SPARSE_LAYER(Half)
TESSERA_SPARSE_LAYER(BFloat16)
#undef TESSERA_SPARSE_LAYER

}  // namespace tessera::runtime::internal
