#pragma once

#include <optional>
#include <vector>

#include "tessera/runtime/internal/dense_pass.hpp"
#include "tessera/runtime/internal/network_layer.hpp"

namespace tessera::runtime::internal {

// A dense layer of a network. In a training step each tile keeps and updates the weights whose
// gradients it adds up in GradW; in other networks the tiles that need a slice of R in Fwd keep
// equal shares of it. Every pass fetches its slices of R from there.
class NetworkDenseLayer final : public NetworkLayerState {
 public:
  // Throws Error{InvalidArgument} if the plan is not one of the problem, or runs in rounds.
  NetworkDenseLayer(const NetworkLayer& layer, const Problem& problem, const planner::Plan& plan,
                    const codelets::Optimiser* optimiser, TileProgram& program);

  void declare_grad_w() override { grad_w_->declare(); }

  std::optional<partitioner::Misfit> set_weights(const sparse::CheckedCsr<float>& given) override;
  bool has_weights() const override { return !parameters.values.empty(); }
  sparse::Csr<float> current_weights() override;
  Bytes pattern_bytes() const override { return {}; }
  Bytes value_bytes() const override { return {}; }
  std::vector<BufferId> value_buffers() const override { return {weights_.buffer}; }

 private:
  const Reduction& declare_product(Pass pass, Turn turn) override;
  BufferId declare_gradients_at_home() override;
  void declare_weights() override;
  void add_loaded(Uses& uses) const override;
  // Calls visit(row, column, position) for all weights, in the order of Parameters::values.
  template <class Visit>
  void for_each_weight(Visit&& visit) const;

  std::optional<DensePass> fwd_, again_, grad_a_, grad_w_;  // again_: of a layer that recomputes
  TensorHome weights_;
};

}  // namespace tessera::runtime::internal
