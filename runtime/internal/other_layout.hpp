#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tessera/base/pass.hpp"
#include "tessera/device/ledger.hpp"
#include "tessera/runtime/internal/one_layout.hpp"

namespace tessera::runtime::internal {

// GradA's own layout beside a layer's first one: it holds transpose(R), its Fwd is GradA, and it
// may run GradW too. Whoever changes the weights changes them here and there.
class OtherLayout {
 public:
  // `layout` is that of the transpose (planner::two_problems).
  OtherLayout(OneLayout layout, const device::Machine& machine);

  OneLayout& layout() { return layout_; }
  const OneLayout& layout() const { return layout_; }
  bool runs_grad_w() const { return layout_.has(Pass::GradW); }

  // Weights, changes and values of R, weights in two halves (layer_weights.hpp); a misfit speaks of
  // this layout, and then, as when anything is thrown, it holds the weights it had.
  std::optional<partitioner::Misfit> encode(std::span<const sparse::CheckedCsr<float>> weights,
                                            const partitioner::EncodeOptions& options);
  void take();
  std::optional<partitioner::Misfit> update(const sparse::PatternChange& change,
                                            std::int64_t group);
  // Values of R in the order of that group's pattern. Allocates nothing.
  void set_values(std::span<const float> values, std::int64_t group);

  // As FullyConnected's; `first` is the layout the values come from. Steps that bring them are
  // charged before those of the pass.
  template <class T>
  bool grad_a(const LayerWeights& first, MatrixView<const T> q_grad, MatrixView<T> s_grad,
              const RunOptions& options, device::Ledger& ledger);
  template <class T>
  bool grad_w(const LayerWeights& first, MatrixView<const T> q_grad, MatrixView<const T> s,
              std::span<sparse::Csr<float>> gradients, const RunOptions& options,
              device::Ledger& ledger);

 private:
  void make_way(const LayerWeights& first);

  OneLayout layout_;
  device::Machine machine_;
  std::vector<device::StepRecord> way_;  // of the values, from layout to layout; made when wanted
  // [groups][values of R] position of each value in transpose(R), of the weights as they are and of
  // those that encode() was given last.
  std::vector<std::vector<std::int64_t>> places_, next_places_;
  std::vector<float> turned_values_;        // set_values' own, in the order of transpose(R)
  device::Ledger own_;                      // of the pass alone
  std::vector<sparse::Csr<float>> turned_;  // gradients of transpose(R)
};

}  // namespace tessera::runtime::internal
