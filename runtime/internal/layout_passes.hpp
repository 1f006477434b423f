#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "tessera/planner/plan.hpp"
#include "tessera/runtime/internal/grad_w_pass.hpp"
#include "tessera/runtime/internal/layer_weights.hpp"
#include "tessera/runtime/internal/own_pass.hpp"
#include "tessera/runtime/internal/spmm_pass.hpp"
#include "tessera/verify/verify.hpp"

namespace tessera::runtime::internal {

// Returns the inputs of a pass of a plan with one layout; `grid` is the plan's (tile_grid()).
PassSpec spec_of(const Problem& problem, const planner::Plan& plan,
                 const partitioner::TileGrid& grid, Pass pass);

// Returns the grid of one group of a plan with one layout. Throws Error{InvalidArgument} if the
// plan is not one of the problem on this machine.
partitioner::TileGrid checked_grid(const Problem& problem, const planner::Plan& plan,
                                   const device::Machine& machine);

// Returns the data that move in GradW.
GradWExchange grad_w_exchange(const planner::Plan& plan);

// One layout of a layer's weights: the buckets, and the programs of the passes that read them.
class LayoutPasses {
 public:
  // The constructor of FullyConnected, for a plan with one layout.
  LayoutPasses(const Problem& problem, const planner::Plan& plan, const device::Machine& machine,
               device::ExchangeMode mode, Executor& executor);

  const partitioner::TileGrid& grid() const { return grid_; }
  LayerWeights& weights() { return weights_; }
  const LayerWeights& weights() const { return weights_; }
  bool has(Pass pass) const;

  // Runs Fwd or GradA on operands of the sizes of the grid, with these values in bucket order.
  bool product(Pass pass, const std::byte* values, device::ByteRows in, device::ByteRows out,
               const PassOptions& options, device::Ledger& ledger);

  // Runs GradW, whose gradients are in the order of the given patterns.
  bool gradient(device::ByteRows q_grad, device::ByteRows s, std::span<float> gradients,
                const PassOptions& options, device::Ledger& ledger);

  // Throw Error{InvalidArgument} for a pass that the layer was planned without.
  const Program& program(Pass pass) const;
  device::MemoryUse memory(Pass pass) const;
  const device::Damage& damage(Pass pass) const;
  verify::Rounding rounding(Pass pass) const;

  // The most memory that any tile needs in any pass.
  Bytes high_water() const;

  // Returns the cost by which the load of Fwd is evened (visit.hpp).
  const partitioner::LoadCost& load_cost() const { return load_cost_; }

  // The memory of one bucket, its words and values, and of the words alone.
  Bytes bucket_bytes() const;
  Bytes word_bytes() const;

 private:
  // Calls `ask` with the OwnPass that runs `pass`.
  template <class Ask>
  auto of(Pass pass, Ask&& ask) const;

  Problem problem_;
  partitioner::TileGrid grid_;  // of one group
  LayerWeights weights_;
  partitioner::LoadCost load_cost_;
  std::optional<OwnPass<SpmmPass>> fwd_, grad_a_;
  std::optional<OwnPass<GradWPass>> grad_w_;
  std::vector<std::byte> in_order_;  // gradients in bucket order
};

}  // namespace tessera::runtime::internal
