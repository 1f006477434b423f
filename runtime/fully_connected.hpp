#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/partitioner/buckets.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/runtime/program.hpp"
#include "tessera/runtime/run_options.hpp"
#include "tessera/sparse/change.hpp"
#include "tessera/sparse/checked.hpp"
#include "tessera/sparse/formats.hpp"
#include "tessera/verify/run_options.hpp"

namespace tessera::runtime {

// A sparse fully connected layer on a machine: planned once, built once, any number of patterns.
//
//   Q[g][x][z] = R[g][x][y] * S[g][y][z],   dS = transpose(R) * dQ,   dR = dQ * transpose(S) where
//   R is
//
// Groups share nothing but the plan: each has tiles of its own, and all take every step together,
// so a pass takes as long as that of the slowest group. Operands of all groups stand one below the
// other: S is [g * y][z], Q [g * x][z]. A group's results are the same bits as those of a layer of
// that group alone, unless the groups' buckets travel different ways: sums are then taken in the
// order of the longest.
// No size need suit the machine: the layer pads x, y and z by itself. Where x and y are no multiple
// of the problem's block, the weights are those of whole blocks (Problem::size_in_blocks); what
// lies beyond meets zeros, and its gradient is 0.
// Operands are strided views of the caller's memory; on the fast path (z contiguous, no padding)
// they are used where they lie. T is the C++ type of the problem's data type,
// anything else is Error{InvalidArgument}, as is an operand of another shape than said, a group the
// layer has not, or a call that needs weights before the first set_weights.
// One thread at a time per layer; tiles, and the buckets of new weights, are spread over the
// executor.
class FullyConnected {
 public:
  // The cost of a pass: modelled cycles and counted bytes.
  using Cost = device::Ledger;

  // The plan must be one for this problem and machine (planner::plan). The executor must outlive
  // the layer. Error{LimitExceeded} when a tile's memory cannot hold one of the passes.
  FullyConnected(const Problem& problem, const planner::Plan& plan, const device::Machine& machine,
                 device::ExchangeMode mode, Executor& executor);
  ~FullyConnected();
  FullyConnected(FullyConnected&&) noexcept;
  FullyConnected& operator=(FullyConnected&&) noexcept;

  // Encodes a matrix [x][y] in the problem's block for each group. The layer shares the matrices
  // with the caller until values of either are changed; it copies nothing of them but the transpose
  // for a layout of GradA's own, and what has to be padded or cut into other blocks. What
  // does not fit the plan's buckets is returned (its cell and tile are those of its group), and the
  // layer keeps the weights it had, as it does when anything is thrown. Values are rounded to the
  // layer's type. Costs partitioner::encode_into and refill; storage is used again.
  std::optional<partitioner::Misfit> set_weights(std::span<const sparse::CheckedCsr<float>> weights,
                                                 const partitioner::EncodeOptions& options = {});
  std::optional<partitioner::Misfit> set_weights(const sparse::CheckedCsr<float>& weights,
                                                 const partitioner::EncodeOptions& options = {});

  // The same for matrices that are checked (sparse::check, Error{BadInput}) and copied first.
  std::optional<partitioner::Misfit> set_weights(std::span<const sparse::Csr<float>> weights,
                                                 const partitioner::EncodeOptions& options = {});
  std::optional<partitioner::Misfit> set_weights(const sparse::Csr<float>& weights,
                                                 const partitioner::EncodeOptions& options = {});
  // Removes and adds blocks of a group's pattern, in blocks of the problem; what stays keeps its
  // value and what is added is 0. The layer then holds sparse::with_change(weights(group), change)
  // as after set_weights with that, but blocks may lie on other tiles of their cell, so sums may
  // round otherwise. A misfit or Error{InvalidArgument} (as with_change) leaves the layer as it
  // was. Costs partitioner::update and copies of the pattern and of the buckets' words; where the
  // machine has other blocks than the problem, a difference of patterns and a refill as well. Cheap
  // where few buckets change; scattered over most of them it costs what set_weights does.
  std::optional<partitioner::Misfit> update_weights(const sparse::PatternChange& change,
                                                    std::int64_t group = 0);
  // New values for a group's pattern, in the order of weights(group).values. No meta-information
  // changes. Costs partitioner::refill; where the machine has other blocks or sizes than the
  // problem, a copy to their places as well. Nothing is allocated from the second call on.
  void set_values(std::span<const float> values, std::int64_t group = 0);

  // s [g * y][z], q [g * x][z] written.
  template <class T>
  device::Ledger forward(MatrixView<const T> s, MatrixView<T> q);
  // q_grad [g * x][z], s_grad [g * y][z] written. Needs a problem with grad_a.
  template <class T>
  device::Ledger grad_a(MatrixView<const T> q_grad, MatrixView<T> s_grad);
  // q_grad [g * x][z], s [g * y][z]; `gradients` get those of all groups' values, group after
  // group, each in the order of its weights, in the layer's type widened to float. Needs a problem
  // with grad_w.
  template <class T>
  device::Ledger grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                        std::span<float> gradients);
  // The same as a matrix for each group, with the pattern of its weights.
  template <class T>
  device::Ledger grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                        std::span<sparse::Csr<float>> gradients);
  // The same for a layer of one group.
  template <class T>
  device::Ledger grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                        sparse::Csr<float>& gradient);

  // The same with a say in how the pass runs; false when options.stop ended it, and then what is
  // written is undefined but the layer is as before. The ledger, the caller's or kept from call to
  // call, is overwritten. From the second call on the same weights and operands of the same shape
  // nothing is allocated in Share mode. With GradA's own layout the steps that bring the values
  // there run, and are counted, before those of the pass.
  template <class T>
  [[nodiscard]] bool forward(MatrixView<const T> s, MatrixView<T> q, const RunOptions& options,
                             device::Ledger& ledger);
  template <class T>
  [[nodiscard]] bool grad_a(MatrixView<const T> q_grad, MatrixView<T> s_grad,
                            const RunOptions& options, device::Ledger& ledger);
  template <class T>
  [[nodiscard]] bool grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                            std::span<float> gradients, const RunOptions& options,
                            device::Ledger& ledger);
  template <class T>
  [[nodiscard]] bool grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                            std::span<sparse::Csr<float>> gradients, const RunOptions& options,
                            device::Ledger& ledger);

  // The same with the options that every layer takes, for code that runs on any of them.
  template <class T, std::same_as<verify::RunOptions> Options>
  [[nodiscard]] bool forward(MatrixView<const T> s, MatrixView<T> q, const Options& options,
                             device::Ledger& ledger) {
    return forward<T>(s, q, on_tiles(options), ledger);
  }
  template <class T, std::same_as<verify::RunOptions> Options>
  [[nodiscard]] bool grad_a(MatrixView<const T> q_grad, MatrixView<T> s_grad,
                            const Options& options, device::Ledger& ledger) {
    return grad_a<T>(q_grad, s_grad, on_tiles(options), ledger);
  }
  template <class T, std::same_as<verify::RunOptions> Options>
  [[nodiscard]] bool grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                            std::span<float> gradients, const Options& options,
                            device::Ledger& ledger) {
    return grad_w<T>(q_grad, s, gradients, on_tiles(options), ledger);
  }

  // What runs when a pass is called. With a layout of its own GradA is the Fwd of transpose(R).
  // Error{InvalidArgument} for a pass the layer was planned without.
  const Program& program(Pass pass) const;
  // What that program needs of every tile; buckets of another layout are not in it.
  device::MemoryUse memory(Pass pass) const;

  // The columns of its operands; batches.hpp takes others.
  std::int64_t batch() const;
  // Values of all groups; 0 before the first set_weights.
  std::int64_t values() const;
  const partitioner::Buckets& buckets(std::int64_t group = 0) const;
  // The values of a group as the forward buckets hold them: [buckets][values_per_bucket], in the
  // layer's type; buckets().source is their order. Where the machine has other blocks or sizes than
  // the problem they have places that the weights do not store. Valid until weights or values
  // change. O(1).
  template <class T>
  std::span<const T> encoded_values(std::int64_t group = 0) const;
  // Gradients of a group, given in the order of its values (as grad_w writes them), in the order of
  // encoded_values and rounded to the layer's type. O(values), and a conversion where the machine
  // has other blocks or sizes than the problem; valid until the next call.
  template <class T>
  std::span<const T> encoded_gradients(std::span<const float> gradients, std::int64_t group = 0);
  // set_values with values in the order of encoded_values; padding, and places that the weights do
  // not store, are passed over. Costs set_values and O(values).
  template <class T>
  void set_encoded_values(std::span<const T> values, std::int64_t group = 0);
  // Of all groups, for a report: counts are sums, the fullest and the steps those of the group that
  // has most. A pass moves buckets as far as travel() says.
  partitioner::SpillStats spill() const;
  partitioner::Travel travel() const;
  // The weights as they were given and changed since, not rounded.
  const sparse::Csr<float>& weights(std::int64_t group = 0) const;
  // The most memory any tile needs in any pass.
  Bytes high_water() const;

 private:
  struct State;
  static RunOptions on_tiles(const verify::RunOptions& options) {
    return {.stop = options.stop, .progress = options.progress, .self_check = options.self_check};
  }

  std::unique_ptr<State> state_;
};

// FullyConnected::memory of a layer that need not fit its machine: what a plan would take, for a
// report of why it does not. Builds the program of the pass, allocates no tile memory.
device::MemoryUse memory_use(const Problem& problem, const planner::Plan& plan,
                             const device::Machine& machine, Pass pass);

// The partitioner's view of a plan: the grid of one group, which is that of all.
partitioner::TileGrid tile_grid(const Problem& problem, const planner::Plan& plan,
                                const device::Machine& machine);

}  // namespace tessera::runtime
