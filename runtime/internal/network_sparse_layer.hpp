#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "tessera/partitioner/saved_weights.hpp"
#include "tessera/runtime/internal/encoded_weights.hpp"
#include "tessera/runtime/internal/grad_w_pass.hpp"
#include "tessera/runtime/internal/network_layer.hpp"
#include "tessera/runtime/internal/network_layout.hpp"
#include "tessera/runtime/internal/rehome.hpp"
#include "tessera/runtime/internal/spmm_pass.hpp"

namespace tessera::runtime::internal {

// A sparse layer of a network, with buckets in one layout or two. With two layouts, that of
// transpose(R) runs GradA. The optimiser updates the layout that runs GradW, and the new values
// then move to the other one.
class NetworkSparseLayer final : public NetworkLayerState {
 public:
  NetworkSparseLayer(const NetworkLayer& layer, const Problem& problem, const planner::Plan& plan,
                     const codelets::Optimiser* optimiser, TileProgram& program,
                     Executor& executor);

  // GradW takes S or dQ from the slices that Fwd or GradA has fetched in the same layout, if each
  // of them is needed by one tile only, which is the one that needs it in GradW too.
  void set_input(const TensorHome& input, const TensorHome& in_backward) override;
  void set_dq(const TensorHome& dq) override;

  void declare_load() override;
  void complete_load() override;
  void declare_grad_w() override { grad_w_->declare(); }
  void declare_rehome() override { rehome_->declare(); }

  std::optional<partitioner::Misfit> set_weights(const sparse::CheckedCsr<float>& given) override;
  partitioner::SavedWeights saved_weights() const override { return weights_.saved(); }
  void restore_weights(const partitioner::SavedWeights& saved) override;
  bool has_weights() const override { return !weights_.forward.weights.empty(); }
  sparse::Csr<float> current_weights() override;
  Bytes pattern_bytes() const override;
  Bytes value_bytes() const override { return Bytes(updated().values_bytes()); }
  Cycles multiply_excess(const planner::Plan& plan, Pass pass) const override;
  void load() override;
  bool has_two_layouts() const override { return transposed_.has_value(); }
  std::vector<BufferId> value_buffers() const override;

 private:
  const Reduction& declare_product(Pass pass, Turn turn) override;
  BufferId declare_gradients_at_home() override;
  void declare_weights() override;
  void add_loaded(Uses& uses) const override;
  void make_passes();
  // Calls visit(loop, pass) for each pass that may propagate.
  template <class Visit>
  void for_each_loop(const Visit& visit);
  void set_parameters();

  // The layout that runs a pass; that of GradW is the one that the optimiser updates. The other one
  // if there are two.
  const NetworkLayout& of(Pass pass) const {
    return weights_.runs_transposed(pass) ? *transposed_ : forward_;
  }
  bool updates_transposed() const { return weights_.runs_transposed(Pass::GradW); }
  const NetworkLayout& updated() const { return of(Pass::GradW); }
  const NetworkLayout& other() const { return updates_transposed() ? forward_ : *transposed_; }

  EncodedWeights weights_;
  NetworkLayout forward_;
  std::optional<NetworkLayout> transposed_;  // of transpose(R)
  SpmmPass fwd_;
  std::optional<SpmmPass> again_;  // of a layer that recomputes
  std::optional<SpmmPass> grad_a_;
  std::unique_ptr<GradWPass> grad_w_;
  RehomeHomes rehome_homes_;
  std::optional<RehomePass> rehome_;  // with two layouts
};

}  // namespace tessera::runtime::internal
