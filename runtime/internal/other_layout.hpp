#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tessera/base/pass.hpp"
#include "tessera/device/ledger.hpp"
#include "tessera/runtime/internal/one_layout.hpp"
#include "tessera/runtime/internal/rehome.hpp"

namespace tessera::runtime::internal {

// GradA's own layout beside a layer's first one: it holds transpose(R), its Fwd is GradA, and it
// may run GradW too. Whoever changes the weights changes them here and there.
class OtherLayout {
 public:
  // `layout` is that of the transpose (planner::two_problems), `rehome` brings its values.
  OtherLayout(OneLayout layout, RehomePass rehome);

  OneLayout& layout() { return layout_; }
  const OneLayout& layout() const { return layout_; }
  bool runs_grad_w() const { return layout_.has(Pass::GradW); }
  const RehomePass& rehome() const { return rehome_; }

  // Weights, changes and values of R, weights in two halves (layer_weights.hpp); a misfit speaks of
  // this layout, and then, as when anything is thrown, it holds the weights it had.
  std::optional<partitioner::Misfit> encode(std::span<const sparse::CheckedCsr<float>> weights,
                                            const partitioner::EncodeOptions& options);
  void take();
  std::optional<partitioner::Misfit> update(const sparse::PatternChange& change,
                                            std::int64_t group);
  // Values of R in the order of that group's pattern. Allocates nothing.
  void set_values(std::span<const float> values, std::int64_t group);

  // As FullyConnected's; `first` is the layout the values come from. The steps that bring them run
  // before those of the pass.
  template <class T>
  bool grad_a(const LayerWeights& first, MatrixView<const T> q_grad, MatrixView<T> s_grad,
              const RunOptions& options, device::Ledger& ledger);
  template <class T>
  bool grad_w(const LayerWeights& first, MatrixView<const T> q_grad, MatrixView<const T> s,
              std::span<sparse::Csr<float>> gradients, const RunOptions& options,
              device::Ledger& ledger);

 private:
  // The tables by which values go from layout to layout, where a pattern has changed.
  void make_tables(const LayerWeights& first);
  bool bring_values(const LayerWeights& first, const RunOptions& options);

  OneLayout layout_;
  RehomePass rehome_;
  bool has_tables_ = false;
  // [groups][values of R] position of each value in transpose(R), of the weights as they are and of
  // those that encode() was given last.
  std::vector<std::vector<std::int64_t>> places_, next_places_;
  std::vector<float> turned_values_;  // set_values' own, in the order of transpose(R)
  device::Ledger way_, own_;          // of the values' way and of the pass alone
  device::TileLedger way_tiles_;
  std::vector<sparse::Csr<float>> turned_;  // gradients of transpose(R)
};

}  // namespace tessera::runtime::internal
