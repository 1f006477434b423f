#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tessera/base/pass.hpp"
#include "tessera/device/ledger.hpp"
#include "tessera/runtime/internal/layout_passes.hpp"
#include "tessera/runtime/internal/rehome.hpp"

namespace tessera::runtime::internal {

// The transposed layout, which a layer may have beside its forward layout: it holds transpose(R),
// its Fwd is the layer's GradA, and it may run GradW too. A caller that changes the weights must
// change them in both layouts.
class TransposedLayout {
 public:
  // `layout` is the layer of the transpose (planner::two_problems); `rehome` moves the values of
  // the forward layout to it.
  TransposedLayout(LayoutPasses layout, RehomePass rehome);

  LayoutPasses& layout() { return layout_; }
  const LayoutPasses& layout() const { return layout_; }
  bool runs_grad_w() const { return layout_.has(Pass::GradW); }
  const RehomePass& rehome() const { return rehome_; }

  // These take weights, changes and values of R. Weights and changes are set in two halves, as in
  // layer_weights.hpp. The message of a misfit names this layout. After a misfit or an exception
  // the layout has the weights it had before.
  std::optional<partitioner::Misfit> encode(std::span<const sparse::CheckedCsr<float>> weights,
                                            const partitioner::EncodeOptions& options);
  void take();

  // LayerWeights::restore for this layout, before take().
  void restore(std::span<const sparse::CheckedCsr<float>> weights,
               const partitioner::SavedLayout& layout);
  std::optional<partitioner::Misfit> encode_update(const sparse::PatternChange& change,
                                                   std::int64_t group);
  void take_update(std::int64_t group);

  // LayerWeights::reserve_values, and scratch memory for the values.
  void reserve_values(std::int64_t group);

  // Takes values in the order of the pattern of R. Allocates nothing from the second call on.
  void set_values(std::span<const float> values, std::int64_t group);

  // Returns the bytes that must be sent for its patterns, and those that the last change sent:
  // words and the tables by which values move here. The values themselves come from the first
  // layout.
  Bytes pattern_bytes() const { return sent(layout_.weights().pattern_bytes()); }
  Bytes pattern_change_bytes() const { return sent(layout_.weights().pattern_change_bytes()); }

  // GradA of FullyConnected. `first` has the weights of the forward layout, from which the values
  // come; the steps that move them run before those of the pass.
  template <class T>
  bool grad_a(const LayerWeights& first, MatrixView<const T> q_grad, MatrixView<T> s_grad,
              const PassOptions& options, device::Ledger& ledger);

  // GradW of FullyConnected. It needs no values, so only the steps of the pass run.
  template <class T>
  bool grad_w(MatrixView<const T> q_grad, MatrixView<const T> s, std::span<float> gradients,
              const PassOptions& options, device::Ledger& ledger);

 private:
  Bytes sent(const PatternBytes& layout) const;

  // Returns the transposed weights, and notes where their values are in them.
  std::vector<sparse::CheckedCsr<float>> turned(std::span<const sparse::CheckedCsr<float>> weights);

  // Makes the tables by which values move between the layouts, if a pattern has changed.
  void make_tables(const LayerWeights& first);
  bool bring_values(const LayerWeights& first, const PassOptions& options);

  LayoutPasses layout_;
  RehomePass rehome_;
  bool has_tables_ = false;
  // [groups][values of R]: the position of each value in transpose(R), for the current weights and
  // for those encoded last; after encode_update() only of the group that changes.
  std::vector<std::vector<std::int64_t>> places_, next_places_;
  std::vector<float> turned_values_;  // scratch of set_values, in the order of transpose(R)
  std::int64_t begun_ = 0;            // calls of PassOptions::progress while values moved
  device::Ledger way_, own_;          // of moving the values, and of the pass alone
  device::TileLedger way_tiles_;
  std::vector<float> turned_;  // gradients in the order of transpose(R)
};

}  // namespace tessera::runtime::internal
