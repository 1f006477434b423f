#include "tessera/runtime/internal/other_layout.hpp"

#include <algorithm>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/runtime/internal/rehome.hpp"
#include "tessera/sparse/convert.hpp"

namespace tessera::runtime::internal {
namespace {

// This layout counts cells and tiles of the transpose.
std::optional<partitioner::Misfit> turned_name(std::optional<partitioner::Misfit> misfit) {
  if (misfit)
    misfit->message = "in GradA's own layout, where x and y are exchanged: " + misfit->message;
  return misfit;
}

}  // namespace

OtherLayout::OtherLayout(OneLayout layout, const device::Machine& machine)
    : layout_(std::move(layout)), machine_(machine) {}

std::optional<partitioner::Misfit> OtherLayout::encode(
    std::span<const sparse::CheckedCsr<float>> weights, const partitioner::EncodeOptions& options) {
  std::vector<sparse::CheckedCsr<float>> turned;
  next_places_.clear();
  for (const auto& matrix : weights) {
    turned.push_back(sparse::transpose(matrix));
    next_places_.push_back(sparse::transpose_order(turned.back()));
  }
  return turned_name(layout_.weights().encode(turned, options));
}

void OtherLayout::take() {
  layout_.weights().take();
  places_.swap(next_places_);
  way_.clear();
}

std::optional<partitioner::Misfit> OtherLayout::update(const sparse::PatternChange& change,
                                                       std::int64_t group) {
  sparse::PatternChange turned = change;
  for (auto* blocks : {&turned.removed, &turned.added})
    for (sparse::BlockAt& at : *blocks) std::swap(at.row, at.col);
  if (auto misfit = layout_.weights().update(turned, group)) return turned_name(std::move(misfit));
  places_[std::size_t(group)] = sparse::transpose_order(layout_.weights().given(group));
  way_.clear();
  return std::nullopt;
}

void OtherLayout::set_values(std::span<const float> values, std::int64_t group) {
  const std::vector<std::int64_t>& places = places_[std::size_t(group)];
  turned_values_.resize(places.size());
  for (std::size_t i = 0; i < places.size(); ++i)
    turned_values_[std::size_t(places[i])] = values[i];
  layout_.weights().set_values(turned_values_, group);
}

void OtherLayout::make_way(const LayerWeights& first) {
  if (way_.empty())
    way_ = rehome_steps(first.image().groups, layout_.weights().image().groups, machine_);
}

template <class T>
bool OtherLayout::grad_a(const LayerWeights& first, MatrixView<const T> q_grad,
                         MatrixView<T> s_grad, const RunOptions& options, device::Ledger& ledger) {
  make_way(first);
  const bool finished = layout_.product<T>(Pass::Fwd, q_grad, s_grad, options, own_);
  // Copied step onto the same step as last time, whose names then have room.
  ledger.steps.resize(way_.size() + own_.steps.size());
  std::copy(own_.steps.begin(), own_.steps.end(),
            std::copy(way_.begin(), way_.end(), ledger.steps.begin()));
  if (options.tiles != nullptr) {  // only charged: nothing is known tile by tile
    options.tiles->steps.insert(options.tiles->steps.begin(), way_.size(), {});
    options.tiles->phases.insert(options.tiles->phases.begin(), way_.size(), -1);
  }
  return finished;
}

template <class T>
bool OtherLayout::grad_w(const LayerWeights& first, MatrixView<const T> q_grad,
                         MatrixView<const T> s, std::span<sparse::Csr<float>> gradients,
                         const RunOptions& options, device::Ledger& ledger) {
  turned_.resize(gradients.size());
  // transpose(dR) = S * transpose(dQ): the other layout's gradient with operands changed over.
  if (!layout_.gradient<T>(s, q_grad, turned_, options, ledger)) return false;
  for (std::size_t g = 0; g < gradients.size(); ++g) {
    gradients[g] = *first.given(std::int64_t(g));
    for (std::size_t i = 0; i < places_[g].size(); ++i)
      gradients[g].values[i] = turned_[g].values[std::size_t(places_[g][i])];
  }
  return true;
}

#define TESSERA_OTHER_LAYOUT(T)                                                                    \
  template bool OtherLayout::grad_a(const LayerWeights&, MatrixView<const T>, MatrixView<T>,       \
                                    const RunOptions&, device::Ledger&);                           \
  template bool OtherLayout::grad_w(const LayerWeights&, MatrixView<const T>, MatrixView<const T>, \
                                    std::span<sparse::Csr<float>>, const RunOptions&,              \
                                    device::Ledger&);
TESSERA_OTHER_LAYOUT(float)
TESSERA_OTHER_LAYOUT(Half)
TESSERA_OTHER_LAYOUT(BFloat16)
#undef TESSERA_OTHER_LAYOUT

}  // namespace tessera::runtime::internal
