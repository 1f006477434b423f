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

using device::ByteRows;

SparseLayer::SparseLayer(const Problem& of, const planner::Plan& plan, const device::Machine& on,
                         device::ExchangeMode how, Executor& threads)
    : State(of, plan, on, how, threads), weights_(of, plan, on, threads) {
  const auto make = [&](auto& pass, Pass of_pass, const auto&... more) {
    if (weights_.has(of_pass))
      programs[std::size_t(of_pass)] =
          &pass.emplace(on, how, threads, weights_.spec(of_pass), more...);
  };
  make(fwd_, Pass::Fwd);
  make(grad_a_, Pass::GradA);
  make(grad_w_, Pass::GradW, weights_.layout_of(Pass::GradW).grad_w_exchange());
  if (!weights_.transposed) return;
  rehome_.emplace(on, how, threads,
                  RehomeSpec{weights_.forward.grid, weights_.transposed->grid, of.size.g});
  if (const Bytes most = high_water(); most > on.tile_memory)
    throw Error(ErrorCode::LimitExceeded,
                fmt::format("a tile needs {} bytes for the buckets of both layouts, but {} has {} "
                            "per tile; plan with perPassPlans false",
                            most.value, on.name, on.tile_memory.value));
}

verify::Rounding SparseLayer::rounding(Pass pass) const {
  return {problem.data_type, problem.partials_type,
          planner::partial_sums(weights_.forward.plan, pass)};
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
  const Dims& size = weights_.layout_of(pass).grid.size;
  return weights_.runs_transposed(pass) ? Dims{size.g, size.y, size.x, size.z} : size;
}

verify::MemoryDamage SparseLayer::damage(Pass pass) const {
  const bool moved = rehome_ && pass == Pass::GradA;
  return memory_damage({moved ? rehome_->damage() : device::Damage(), planned(pass).damage()});
}

bool SparseLayer::transposed_product(ByteRows in, ByteRows out, const PassOptions& options,
                                     device::Ledger& ledger) {
  if (!has_tables_) weights_.make_tables((*rehome_)->tables);
  has_tables_ = true;
  RunSeries series(options, ledger, std::move(own_));
  bool finished = series.run([&](const PassOptions& own, device::Ledger& of_run) {
    return rehome_->run(own, of_run, weights_.forward.weights.image().values);
  });
  series.forget_stages();
  finished = finished && series.run([&](const PassOptions& own, device::Ledger& of_run) {
    BucketImage image = weights_.transposed->weights.image();
    image.values = (*rehome_)->result.data();
    return grad_a_->run(own, of_run, image, in, out);
  });
  own_ = std::move(series.scratch());
  return finished;
}

bool SparseLayer::product(Pass pass, ByteRows in, ByteRows out, const PassOptions& options,
                          device::Ledger& ledger) {
  if (weights_.runs_transposed(pass)) return transposed_product(in, out, options, ledger);
  return (pass == Pass::Fwd ? *fwd_ : *grad_a_)
      .run(options, ledger, weights_.forward.weights.image(), in, out);
}

bool SparseLayer::gradient(ByteRows q_grad, ByteRows s, std::span<float> gradients,
                           const PassOptions& options, device::Ledger& ledger) {
  // transpose(dR) = S * transpose(dQ), so this layout computes its gradient with operands swapped.
  const bool is_turned = weights_.runs_transposed(Pass::GradW);
  if (is_turned) std::swap(q_grad, s);
  WeightLayout& layout = is_turned ? *weights_.transposed : weights_.forward;
  in_order_.resize(std::size_t(problem.size.g * layout.all_value_bytes().value));
  const GradWPass::Operands operands{q_grad, s, in_order_.data()};
  if (!grad_w_->run(options, ledger, layout.weights.image(), operands)) return false;
  if (is_turned) turned_.resize(gradients.size());
  with_type(problem.data_type, [&]<class T>(T) {
    const std::span<const T> values(reinterpret_cast<const T*>(in_order_.data()),
                                    in_order_.size() / sizeof(T));
    std::span<float> rest = is_turned ? std::span(turned_) : gradients;
    for (std::int64_t g = 0; g < problem.size.g; ++g) {
      const std::size_t count = layout.weights.given(g)->values.size();
      layout.weights.to_given<T>(values, g, rest.first(count));
      rest = rest.subspan(count);
    }
  });
  if (is_turned) weights_.turn_back(turned_, gradients);
  return true;
}

// The buckets of both layouts, and the table by which values move between them, are on a tile all
// the time.
Bytes SparseLayer::high_water() const {
  if (!rehome_) return LayerOnTiles::high_water();
  const WeightLayout &first = weights_.forward, &second = *weights_.transposed;
  Bytes most = rehome_->high_water() + first.word_bytes() + second.word_bytes();
  for (const Pass pass : {Pass::Fwd, Pass::GradA, Pass::GradW}) {
    if (!has(pass)) continue;
    const WeightLayout& other = weights_.runs_transposed(pass) ? first : second;
    most = std::max(
        most, planned(pass).high_water() + other.bucket_bytes() + Bytes((*rehome_)->table_bytes()));
  }
  return most;
}

// The values of the second layout come from the first one, by its table.
Bytes SparseLayer::pattern_bytes() const {
  const Bytes first = weights_.forward.weights.pattern_bytes().all();
  if (!rehome_) return first;
  const PatternBytes second = weights_.transposed->weights.pattern_bytes();
  const std::int64_t tiles = weights_.transposed->grid.buckets() * problem.size.g;
  return first + second.words + second.travel + Bytes(tiles * (*rehome_)->table_bytes());
}

partitioner::Travel SparseLayer::travel() const {
  return weights_.forward.weights.image().travel();
}

}  // namespace tessera::runtime::internal
