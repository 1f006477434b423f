#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "tessera/base/matrix.hpp"
#include "tessera/planner/plan.hpp"
#include "tessera/runtime/grad_w_pass.hpp"
#include "tessera/runtime/internal/layer_weights.hpp"
#include "tessera/runtime/internal/padded.hpp"
#include "tessera/runtime/spmm_pass.hpp"
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

// Throws Error{InvalidArgument}: the layer was planned without this pass.
[[noreturn]] void throw_no_pass(Pass pass);

// Values that a pass brought from another layout, in bucket order as BucketImage::values, and the
// memory that changed on the way.
struct MovedValues {
  const std::byte* values = nullptr;
  device::Damage damage;
};

// A layer whose passes share one layout of the weights: the buckets, and the programs of its
// passes. FullyConnected has one of these, or two (transposed_layout.hpp).
class LayoutPasses {
 public:
  // The constructor of FullyConnected, for a plan with one layout.
  LayoutPasses(const Problem& problem, const planner::Plan& plan, const device::Machine& machine,
               device::ExchangeMode mode, Executor& executor);

  const Problem& problem() const { return problem_; }
  const partitioner::TileGrid& grid() const { return grid_; }
  LayerWeights& weights() { return weights_; }
  const LayerWeights& weights() const { return weights_; }
  bool has(Pass pass) const;

  // Runs Fwd or GradA, as the functions of FullyConnected that take PassOptions do. If `moved` is
  // not null, its values are used instead of those of weights().
  template <class T>
  bool product(Pass pass, MatrixView<const T> in, MatrixView<T> out, const PassOptions& options,
               device::Ledger& ledger, const MovedValues* moved = nullptr);

  // Runs GradW.
  template <class T>
  bool gradient(MatrixView<const T> q_grad, MatrixView<const T> s, std::span<float> gradients,
                const PassOptions& options, device::Ledger& ledger);

  // Throw Error{InvalidArgument} for a pass that the layer was planned without.
  const Program& program(Pass pass) const;
  device::MemoryUse memory(Pass pass) const;

  // The most memory that any tile needs in any pass.
  Bytes high_water() const;

  // Returns the cost by which the load of Fwd is evened (visit.hpp).
  const partitioner::LoadCost& load_cost() const { return load_cost_; }

  // The memory of one bucket, its words and values, and of the words alone.
  Bytes bucket_bytes() const;
  Bytes word_bytes() const;

 private:
  // Calls `ask` with the SpmmPass or GradWPass that runs `pass`.
  template <class Ask>
  auto of(Pass pass, Ask&& ask) const;

  // Returns an operand, whose rows in each group are this side of the problem, in the size that
  // programs read.
  template <class T>
  Padded<T> operand(MatrixView<T> view, std::int64_t Dims::* side);
  verify::Rounding rounding(Pass pass) const;

  Problem problem_;
  partitioner::TileGrid grid_;  // of one group
  LayerWeights weights_;
  partitioner::LoadCost load_cost_;
  std::optional<SpmmPass> fwd_, grad_a_;
  std::optional<GradWPass> grad_w_;
  // Reused from call to call: operands in the program's size, by side, and gradients in bucket
  // order.
  std::array<std::vector<std::byte>, 2> copies_;
  std::vector<std::byte> in_order_;
};

// Returns LayoutPasses::memory of such a layer without the check that a tile can hold it.
device::MemoryUse memory_of_one(const Problem& problem, const planner::Plan& plan,
                                const device::Machine& machine, Pass pass);

}  // namespace tessera::runtime::internal
