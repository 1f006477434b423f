#pragma once

#include <memory>
#include <optional>
#include <span>

#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/partitioner/buckets.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::runtime {

// A sparse fully connected layer on a machine: planned once, built once, any number of patterns.
//
//   Q[x][z] = R[x][y] * S[y][z],   dS = transpose(R) * dQ,   dR = dQ * transpose(S) where R is
//
// The batch need not suit the machine: the layer pads z to whole grains by itself. x and y must be
// multiples of the problem's block.
// Operands are strided views of the caller's memory; on the fast path (z contiguous, no padding)
// they are used where they lie. T is float for DataType::Float and Half for DataType::Half,
// anything else is Error{InvalidArgument}, as is an operand of another shape than said.
// One thread at a time per layer; the machine's tiles are spread over the executor.
class FullyConnected {
 public:
  // The plan must be one for this problem and machine (planner::plan). The executor must outlive
  // the layer. Error{LimitExceeded} when a tile's memory cannot hold one of the passes.
  FullyConnected(const planner::Problem& problem, const planner::Plan& plan,
                 const device::Machine& machine, device::ExchangeMode mode, Executor& executor);
  ~FullyConnected();
  FullyConnected(FullyConnected&&) noexcept;
  FullyConnected& operator=(FullyConnected&&) noexcept;

  // Encodes a matrix [x][y] in the problem's block, canonical (sparse::check). What does not fit
  // the plan's buckets is returned, and the layer keeps the pattern it had. Values are rounded to
  // the layer's type.
  std::optional<partitioner::Misfit> set_weights(const sparse::Csr<float>& weights,
                                                 const partitioner::EncodeOptions& options = {});

  // s [y][z], q [x][z] written. Error{InvalidArgument} before the first set_weights.
  template <class T>
  device::Ledger forward(MatrixView<const T> s, MatrixView<T> q);
  // q_grad [x][z], s_grad [y][z] written. Needs a problem with grad_a.
  template <class T>
  device::Ledger grad_a(MatrixView<const T> q_grad, MatrixView<T> s_grad);
  // q_grad [x][z], s [y][z]; `gradient` gets the pattern of the weights, values in the layer's type
  // widened to float. Needs a problem with grad_w.
  template <class T>
  device::Ledger grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                        sparse::Csr<float>& gradient);

  const partitioner::Buckets& buckets() const;
  // The most memory any tile needs in any pass.
  Bytes high_water() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The partitioner's view of a plan.
partitioner::TileGrid tile_grid(const planner::Problem& problem, const planner::Plan& plan,
                                const device::Machine& machine);

}  // namespace tessera::runtime
