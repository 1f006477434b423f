#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tessera/runtime/internal/encoded_weights.hpp"
#include "tessera/runtime/internal/fully_connected_state.hpp"
#include "tessera/runtime/internal/layout_passes.hpp"
#include "tessera/runtime/internal/rehome.hpp"

namespace tessera::runtime::internal {

// Returns the problem of the first layout: that of the layer, without the passes that the layout of
// transpose(R) runs if the plan has one.
Problem forward_problem(const Problem& problem, const planner::Plan& plan);

// A layer whose plan keeps R in buckets: in one layout, or in two. The Fwd of transpose(R) is then
// GradA: its values come from the forward layout, by steps that run before those of the pass. It
// may run GradW too, which needs no values.
class SparseLayer final : public FullyConnected::State {
 public:
  SparseLayer(const Problem& problem, const planner::Plan& plan, const device::Machine& machine,
              device::ExchangeMode mode, Executor& executor);

  bool empty() const override { return forward_.weights().empty(); }
  bool has(Pass pass) const override;
  const sparse::CheckedCsr<float>& given(std::int64_t group) const override {
    return forward_.weights().given(group);
  }
  verify::Rounding rounding(Pass pass) const override;
  const Program& program(Pass pass) const override;
  device::MemoryUse memory(Pass pass) const override;
  Bytes high_water() const override;
  Bytes pattern_bytes() const override;
  Bytes pattern_change_bytes() const override;
  partitioner::SpillStats spill() const override { return forward_.weights().spill(); }
  partitioner::Travel travel() const override;

  // The parts that only a layer with buckets has.
  const LayoutPasses& forward_layout() const { return forward_; }
  const LayerWeights& weights_for(Pass pass) const { return runs(pass).first->weights(); }
  EncodedWeights& weights() { return weights_; }
  void restore(const partitioner::SavedWeights& saved);

 private:
  std::optional<partitioner::Misfit> encode(std::span<const sparse::CheckedCsr<float>> weights,
                                            const partitioner::EncodeOptions& options) override;
  std::optional<partitioner::Misfit> encode_update(const sparse::PatternChange& change,
                                                   std::int64_t group) override;
  void take_update(std::int64_t group) override;
  void put_values(std::span<const float> values, std::int64_t group) override;
  Dims padded(Pass pass) const override;
  bool product(Pass pass, device::ByteRows in, device::ByteRows out, const PassOptions& options,
               device::Ledger& ledger) override;
  bool gradient(device::ByteRows q_grad, device::ByteRows s, std::span<float> gradients,
                const PassOptions& options, device::Ledger& ledger) override;
  verify::MemoryDamage damage(Pass pass) const override;

  // Returns the layout that runs a pass, and the pass of that layout which it is.
  std::pair<const LayoutPasses*, Pass> runs(Pass pass) const;
  bool runs_transposed(Pass pass) const { return transposed_ && runs(pass).first == &*transposed_; }

  // Runs GradA by the second layout.
  bool transposed_product(device::ByteRows in, device::ByteRows out, const PassOptions& options,
                          device::Ledger& ledger);
  // Makes the tables by which values move between the layouts, if a pattern has changed.
  void make_tables();
  // Returns the bytes that are sent for the patterns of the second layout. The values come from the
  // first one.
  Bytes sent(const PatternBytes& layout) const;

  LayoutPasses forward_;
  std::optional<LayoutPasses> transposed_;     // if the plan has one
  std::optional<OwnPass<RehomePass>> rehome_;  // with two layouts: moves values to the second one
  EncodedWeights weights_;
  bool has_tables_ = false;
  device::Ledger own_;         // of moving the values, or of the pass alone
  std::vector<float> turned_;  // gradients in the order of transpose(R)
};

}  // namespace tessera::runtime::internal
