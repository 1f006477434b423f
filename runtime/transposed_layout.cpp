#include "tessera/runtime/internal/transposed_layout.hpp"

#include <algorithm>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/runtime/internal/joined_runs.hpp"
#include "tessera/runtime/internal/layer_check.hpp"
#include "tessera/sparse/convert.hpp"

namespace tessera::runtime::internal {
namespace {

// Cells and tiles in a misfit of this layout are those of the transpose, and its message says so.
std::optional<partitioner::Misfit> turned_name(std::optional<partitioner::Misfit> misfit) {
  if (misfit)
    misfit->message = "in GradA's own layout, where x and y are exchanged: " + misfit->message;
  return misfit;
}

}  // namespace

TransposedLayout::TransposedLayout(LayoutPasses layout, RehomePass rehome)
    : layout_(std::move(layout)), rehome_(std::move(rehome)) {}

std::vector<sparse::CheckedCsr<float>> TransposedLayout::turned(
    std::span<const sparse::CheckedCsr<float>> weights) {
  std::vector<sparse::CheckedCsr<float>> all;
  next_places_.clear();
  for (const auto& matrix : weights) {
    all.push_back(sparse::transpose(matrix));
    next_places_.push_back(sparse::transpose_order(all.back()));
  }
  return all;
}

std::optional<partitioner::Misfit> TransposedLayout::encode(
    std::span<const sparse::CheckedCsr<float>> weights, const partitioner::EncodeOptions& options) {
  partitioner::EncodeOptions own = options;
  if (own.even_load) own.even_load = layout_.load_cost();
  return turned_name(layout_.weights().encode(turned(weights), own));
}

Bytes TransposedLayout::sent(const PatternBytes& layout) const {
  const std::int64_t tiles = layout_.grid().buckets() * layout_.problem().size.g;
  return layout.words + layout.travel + Bytes(tiles * rehome_.table_bytes().value);
}

void TransposedLayout::take() {
  layout_.weights().take();
  places_.swap(next_places_);
  has_tables_ = false;
}

std::optional<partitioner::Misfit> TransposedLayout::encode_update(
    const sparse::PatternChange& change, std::int64_t group) {
  sparse::PatternChange turned = change;
  for (auto* blocks : {&turned.removed, &turned.added})
    for (sparse::BlockAt& at : *blocks) std::swap(at.row, at.col);
  if (auto misfit = layout_.weights().encode_update(turned, group))
    return turned_name(std::move(misfit));
  next_places_.resize(1);
  next_places_.front() = sparse::transpose_order(layout_.weights().updated());
  return std::nullopt;
}

void TransposedLayout::take_update(std::int64_t group) {
  layout_.weights().take_update(group);
  places_[std::size_t(group)].swap(next_places_.front());
  has_tables_ = false;
}

void TransposedLayout::reserve_values(std::int64_t group) {
  layout_.weights().reserve_values(group);
  turned_values_.resize(places_[std::size_t(group)].size());
}

void TransposedLayout::set_values(std::span<const float> values, std::int64_t group) {
  reserve_values(group);
  const std::vector<std::int64_t>& places = places_[std::size_t(group)];
  for (std::size_t i = 0; i < places.size(); ++i)
    turned_values_[std::size_t(places[i])] = values[i];
  layout_.weights().set_values(turned_values_, group);
}

void TransposedLayout::make_tables(const LayerWeights& first) {
  if (has_tables_) return;
  for (std::size_t g = 0; g < places_.size(); ++g) {
    const auto group = std::int64_t(g);
    const std::vector<std::int64_t> from = first.bucket_positions(group);
    const std::vector<std::int64_t> turned = layout_.weights().bucket_positions(group);
    std::vector<std::int64_t> to(from.size());
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = turned[std::size_t(places_[g][i])];
    rehome_.set_pattern(group, from, to);
  }
  has_tables_ = true;
}

bool TransposedLayout::bring_values(const LayerWeights& first, const PassOptions& options) {
  make_tables(first);
  return rehome_.run(first.image().values,
                     options_before(options, rehome_.steps(), begun_, way_tiles_), way_);
}

template <class T>
bool TransposedLayout::grad_a(const LayerWeights& first, MatrixView<const T> q_grad,
                              MatrixView<T> s_grad, const PassOptions& options,
                              device::Ledger& ledger) {
  own_.steps.clear();
  empty_tiles(options);
  bool finished = bring_values(first, options);
  const TilePass rest = options_after(options, rehome_.steps(), begun_);
  const MovedValues moved{rehome_.values(), rehome_.damage()};
  finished = finished && layout_.product<T>(Pass::Fwd, q_grad, s_grad, rest, own_, &moved);
  join_steps(way_, own_, ledger);
  join_tiles(way_tiles_, options);
  return finished;
}

template <class T>
bool TransposedLayout::grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                              std::span<float> gradients, const PassOptions& options,
                              device::Ledger& ledger) {
  turned_.resize(gradients.size());
  // transpose(dR) = S * transpose(dQ), so this layout computes its gradient with operands swapped.
  return with_results(
      options, [&] { return layout_.gradient<T>(s, q_grad, turned_, options, ledger); },
      [&] {
        std::size_t first = 0;  // of a group
        for (const std::vector<std::int64_t>& places : places_) {
          for (std::size_t i = 0; i < places.size(); ++i)
            gradients[first + i] = turned_[first + std::size_t(places[i])];
          first += places.size();
        }
      });
}

#define TESSERA_OTHER_LAYOUT(T)                                                                   \
  template bool TransposedLayout::grad_a(const LayerWeights&, MatrixView<const T>, MatrixView<T>, \
                                         const PassOptions&, device::Ledger&);                    \
  template bool TransposedLayout::grad_w(MatrixView<const T>, MatrixView<const T>,                \
                                         std::span<float>, const PassOptions&, device::Ledger&);
TESSERA_OTHER_LAYOUT(float)
TESSERA_OTHER_LAYOUT(Half)
TESSERA_OTHER_LAYOUT(BFloat16)
#undef TESSERA_OTHER_LAYOUT

}  // namespace tessera::runtime::internal
