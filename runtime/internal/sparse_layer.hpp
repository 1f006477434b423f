#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "tessera/runtime/internal/layout_passes.hpp"
#include "tessera/runtime/internal/transposed_layout.hpp"

namespace tessera::runtime::internal {

// Returns the problem of the first layout: that of the layer, without the passes that the layout of
// transpose(R) runs if the plan has one.
Problem forward_problem(const Problem& problem, const planner::Plan& plan);

// A layer whose plan keeps R in buckets: one layout, or two. FullyConnected has one of these or a
// DenseLayer; functions of the same name do the same.
class SparseLayer {
 public:
  // The constructor of FullyConnected, for a valid problem and a plan with buckets.
  SparseLayer(const Problem& problem, const planner::Plan& plan, const device::Machine& machine,
              device::ExchangeMode mode, Executor& executor);

  // The functions of FullyConnected with these names.
  std::optional<partitioner::Misfit> set_weights(std::span<const sparse::CheckedCsr<float>> weights,
                                                 const partitioner::EncodeOptions& options);

  // FullyConnected::update_weights in two halves: without take_update() the layer is unchanged.
  // take_update() must be called with the group of encode_update(), and cannot fail.
  std::optional<partitioner::Misfit> encode_update(const sparse::PatternChange& change,
                                                   std::int64_t group);
  void take_update(std::int64_t group);

  void set_values(std::span<const float> values, std::int64_t group);
  partitioner::SavedWeights saved_weights() const;
  void restore_weights(const partitioner::SavedWeights& saved);

  bool empty() const { return forward_.weights().empty(); }
  bool has(Pass pass) const;
  const sparse::CheckedCsr<float>& given(std::int64_t group) const {
    return forward_.weights().given(group);
  }

  // Runs Fwd or GradA.
  template <class T>
  bool product(Pass pass, MatrixView<const T> in, MatrixView<T> out, const PassOptions& options,
               device::Ledger& ledger);

  // Runs GradW.
  template <class T>
  bool gradient(MatrixView<const T> q_grad, MatrixView<const T> s, std::span<float> gradients,
                const PassOptions& options, device::Ledger& ledger);

  const Program& program(Pass pass) const;
  device::MemoryUse memory(Pass pass) const;
  Bytes high_water() const;
  Bytes pattern_bytes() const;
  Bytes pattern_change_bytes() const;
  partitioner::SpillStats spill() const { return forward_.weights().spill(); }
  partitioner::Travel travel() const;

  // The parts that only a layer with buckets has.
  const LayoutPasses& forward_layout() const { return forward_; }
  LayoutPasses& forward_layout() { return forward_; }
  const LayerWeights& weights_of(Pass pass) const { return runs(pass).first->weights(); }

 private:
  // Returns the layout that runs a pass, and the pass of that layout which it is.
  std::pair<const LayoutPasses*, Pass> runs(Pass pass) const;

  Problem problem_;
  LayoutPasses forward_;
  std::optional<TransposedLayout> transposed_;  // if the plan has one
};

}  // namespace tessera::runtime::internal
