#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tessera/runtime/internal/encoded_weights.hpp"
#include "tessera/runtime/internal/fully_connected_state.hpp"
#include "tessera/runtime/internal/rehome.hpp"
#include "tessera/runtime/internal/spmm_pass.hpp"

namespace tessera::runtime::internal {

// A layer whose plan keeps R in buckets: in one layout, or in two. The Fwd of transpose(R) is then
// GradA: its values come from the forward layout, by steps that run before those of the pass. It
// may run GradW too, which needs no values.
class SparseLayer final : public FullyConnected::State {
 public:
  SparseLayer(const Problem& problem, const planner::Plan& plan, const device::Machine& machine,
              device::ExchangeMode mode, Executor& executor);

  bool empty() const override { return weights_.forward.weights.empty(); }
  const sparse::CheckedCsr<float>& given(std::int64_t group) const override {
    return weights_.forward.weights.given(group);
  }
  verify::Rounding rounding(Pass pass) const override;
  Bytes high_water() const override;
  Bytes pattern_bytes() const override;
  partitioner::SpillStats spill() const override { return weights_.forward.weights.spill(); }
  partitioner::Travel travel() const override;

  // The weights, which only a layer with buckets has in layouts.
  const EncodedWeights& weights() const { return weights_; }
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

  // Runs GradA by the second layout.
  bool transposed_product(device::ByteRows in, device::ByteRows out, const PassOptions& options,
                          device::Ledger& ledger);

  EncodedWeights weights_;
  std::optional<OwnPass<SpmmPass>> fwd_, grad_a_;
  std::optional<OwnPass<GradWPass>> grad_w_;
  std::optional<OwnPass<RehomePass>> rehome_;  // with two layouts: moves values to the second one
  bool has_tables_ = false;                    // false: a pattern has changed
  device::Ledger own_;                         // of moving the values, or of the pass alone
  std::vector<std::byte> in_order_;            // gradients in bucket order
  std::vector<float> turned_;                  // gradients in the order of transpose(R)
};

}  // namespace tessera::runtime::internal
