#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "tessera/base/matrix.hpp"
#include "tessera/planner/plan.hpp"
#include "tessera/runtime/dense_pass.hpp"
#include "tessera/runtime/grad_w_pass.hpp"
#include "tessera/runtime/internal/layer_weights.hpp"
#include "tessera/runtime/internal/padded.hpp"
#include "tessera/verify/verify.hpp"

namespace tessera::runtime::internal {

// Error{InvalidArgument}: the layer was planned without this pass.
[[noreturn]] void throw_no_pass(Pass pass);
// Error{InvalidArgument} unless an operand of x or y rows a group has the layer's shape.
void check_operand(const char* name, std::int64_t rows, std::int64_t cols, const Problem& problem,
                   std::int64_t Dims::*side);

// A layer whose passes share one layout of the weights: buckets, and the programs of its passes.
// FullyConnected is one of these, or two of them (other_layout.hpp).
class OneLayout {
 public:
  // As FullyConnected's, for a plan with one layout.
  OneLayout(const Problem& problem, const planner::Plan& plan, const device::Machine& machine,
            device::ExchangeMode mode, Executor& executor);

  const Problem& problem() const { return problem_; }
  const partitioner::TileGrid& grid() const { return grid_; }
  LayerWeights& weights() { return weights_; }
  const LayerWeights& weights() const { return weights_; }
  bool has(Pass pass) const;

  // Fwd or GradA. The functions of FullyConnected that take RunOptions say the rest. Where `values`
  // is not null, they are used instead of the weights' own: in bucket order, as BucketImage's.
  template <class T>
  bool product(Pass pass, MatrixView<const T> in, MatrixView<T> out, const RunOptions& options,
               device::Ledger& ledger, const std::byte* values = nullptr);
  template <class T>
  bool gradient(MatrixView<const T> q_grad, MatrixView<const T> s,
                std::span<sparse::Csr<float>> gradients, const RunOptions& options,
                device::Ledger& ledger);

  // Error{InvalidArgument} for a pass there is not.
  const Program& program(Pass pass) const;
  device::MemoryUse memory(Pass pass) const;
  // The most memory any tile needs in any pass, and what its buckets need of it at any time.
  Bytes high_water() const;
  Bytes bucket_bytes() const;
  Bytes word_bytes() const;  // of those the words alone

 private:
  // Calls `ask` with the pass that runs this.
  template <class Ask>
  auto of(Pass pass, Ask&& ask) const;
  // An operand of x or y rows a group as programs want it.
  template <class T>
  Padded<T> operand(const char* name, MatrixView<T> view, std::int64_t Dims::*side);
  verify::Rounding rounding(Pass pass) const;

  Problem problem_;
  partitioner::TileGrid grid_;  // of one group
  LayerWeights weights_;
  std::optional<DensePass> fwd_, grad_a_;
  std::optional<GradWPass> grad_w_;
  // Kept from call to call: operands in the program's size, by side, and gradients in bucket order.
  std::array<std::vector<std::byte>, 2> copies_;
  std::vector<std::byte> in_order_;
};

// What a tile would need for a pass of such a layer, without the check that it has that.
device::MemoryUse memory_of_one(const Problem& problem, const planner::Plan& plan,
                                const device::Machine& machine, Pass pass);

}  // namespace tessera::runtime::internal
