#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/base/movable_state.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/partitioner/buckets.hpp"
#include "tessera/partitioner/saved_weights.hpp"
#include "tessera/planner/network.hpp"
#include "tessera/planner/plan.hpp"
#include "tessera/planner/plan_network.hpp"
#include "tessera/runtime/program.hpp"
#include "tessera/runtime/tile_options.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::runtime {

// The description of a network and of its work (planner/network.hpp).
using planner::NetworkLayer;
using planner::NetworkSpec;
using planner::NetworkWork;
using planner::problems_of;

// A part of a network's program: Program::scopes has its name.
struct NetworkPart {
  NetworkWork work = NetworkWork::Fwd;
  std::int64_t layer = 0;  // counted from 0; of Loss the last one, of UpdateBiases 0

  friend bool operator==(const NetworkPart&, const NetworkPart&) = default;
};

// The data of one run. Rows are features and columns are the batch.
struct NetworkBatch {
  MatrixView<const float> inputs;             // [inputs][batch]
  std::span<const std::int32_t> labels = {};  // [batch], for SoftmaxCrossEntropy
  MatrixView<const float> targets = {};       // [outputs][batch], for MeanSquaredError
};

// Throws Error{InvalidArgument} unless the batch belongs to the network: sizes, and labels that are
// outputs.
void check_batch(const NetworkSpec& spec, const NetworkBatch& batch);

// The cost of one run: all steps, and the part of the program that each belongs to.
struct NetworkCost {
  device::Ledger ledger;
  std::vector<int> part_of;  // [steps] index into Network::parts()
  std::vector<int> node_of;  // [steps] Node::number of the step in Network::program()

  // Returns the cycles of the steps of one part, with their barriers and launches.
  Cycles of(int part) const;

  // Returns the bytes that all tiles receive in the steps of one part.
  Bytes moved(int part) const;
};

// A network on a modelled machine, as one program: all layers stay in the tiles' memory, results
// go from tile to tile, and weights and biases are updated where they are. Every step is run and
// charged; only the inputs, labels and parameters are loaded, and results collected, without cost.
//
// Fwd leaves its result on the tiles that computed it. These add the bias and apply the activation.
// The first exchange of each pass fetches the slices that tiles need from there, so no exchange
// only hands a result over. The loss is computed with whole columns on a tile. Backward, the
// gradient of a result stays on the tiles on which the next layer's GradA added it up; what the
// derivative needs comes there with the operand of that GradA. Gradients of weights stay in the
// order of the buckets, and each tile updates the values of its own bucket. If a layer has a second
// layout for its backward passes, one exchange brings the new values to it. The gradients of all
// biases are summed up together at the end, on tiles that own their rows, update them and send them
// back. The tiles of a dense layer update the weights whose gradients they add up, and its passes
// fetch their slices of R from there.
//
// If a layer recomputes, its results are given up as soon as the next layer has fetched them, and
// its forward pass runs a second time in front of the next layer's backward passes. Losses and
// parameters have the same bits as without.
//
// Results and ledgers have the same bits for any number of threads and both exchange modes. One
// thread at a time may use a network.
class Network {
 public:
  // Builds the program. `plans` has a plan for each of problems_of(spec), as
  // planner::plan_network makes them. Plans of sparse layers have one layout or two, buckets
  // (option planConstraints.useDense false) and operands at home (operandPlacement "at-home");
  // those of dense layers are dense plans whose passes run in one round. The executor must outlive
  // the network. Throws Error{InvalidArgument} for other plans, and Error{LimitExceeded}, which
  // names tile, step and largest buffers, if the memory of a tile cannot hold the program. At first
  // no layer has weights, and all biases are 0.
  Network(const NetworkSpec& spec, std::span<const planner::Plan> plans,
          const device::Machine& machine, device::ExchangeMode mode, Executor& executor);
  ~Network();
  Network(Network&&) noexcept;

  const NetworkSpec& spec() const;

  // Encodes the weights of a layer, [outputs][inputs] in its block (a dense layer takes what is not
  // stored as 0), and sets the states of its
  // optimiser to 0. Returns a misfit if they do not fit the plan's buckets; the layer then keeps
  // the weights that it had.
  std::optional<partitioner::Misfit> set_weights(std::int64_t layer,
                                                 const sparse::Csr<float>& weights);

  // Return and take the weights of a sparse layer, encoded, for partitioner::describe:
  // those of the last set_weights or restore_weights, without the updates of runs. Restored weights
  // have their values rounded to the network's type; states of the optimiser are set to 0. Throw
  // Error{InvalidArgument}, which names the layer, for a dense one, before its first weights, and
  // for weights that were encoded for another plan or machine; restore_weights throws
  // Error{BadInput} if words, patterns and statistics contradict each other. The layer then keeps
  // the weights that it had.
  partitioner::SavedWeights saved_weights(std::int64_t layer) const;
  void restore_weights(std::int64_t layer, const partitioner::SavedWeights& saved);

  // Sets the bias of a layer that has one, [outputs].
  void set_bias(std::int64_t layer, std::span<const float> bias);

  // Sets the learning rate of the optimiser for the runs from now on. Throws Error{InvalidArgument}
  // for a rate outside its range.
  void set_learning_rate(double rate);

  // Return the current parameters of a layer, after the updates of all runs so far. The weights of
  // a dense layer are all stored.
  sparse::Csr<float> weights(std::int64_t layer) const;
  std::span<const float> bias(std::int64_t layer) const;

  // Runs the program once: a training step if the network has a loss, else the computation of the
  // outputs. Returns false if options.stop ended the run; parameters are then, and after an error,
  // those of before. Throws Error{InvalidArgument} for a batch that does not belong to the network,
  // before every layer has weights, for self_check, repair and fault, which are for single layers,
  // and if the loss is not finite: the message names step and layer with the largest value.
  bool run(const NetworkBatch& batch, const PassOptions& options, NetworkCost& cost);
  NetworkCost run(const NetworkBatch& batch);

  // Returns the loss of the last run.
  float loss() const;

  // Returns the outputs of the last run, [outputs][batch]; empty with a loss.
  const Matrix<float>& outputs() const;

  // Returns the bytes that the host must send for new patterns of all layers: words and values of
  // their buckets in all layouts, the words that steer propagation, and the tables by which values
  // move between two layouts. States of the optimiser begin at 0 and are not sent. Dense layers
  // have no pattern.
  Bytes pattern_bytes() const;

  // Returns the bytes of the values of all weights in the layout that is updated, padding of the
  // buckets included, and of the states of the optimiser: a host that changes patterns and keeps
  // values and states of the other weights reads them, and sends the states back.
  Bytes value_bytes() const;
  Bytes state_bytes() const;

  // Returns the planned work of a training step or of computing outputs with the weights that the
  // network has. A plan knows densities only, and the slowest tile depends on where the weights
  // are: in small cells one more block can cost a fourth of a pass. So the multiplications are
  // counted from the words of all buckets, as an encoder can before anything runs. `plan` must be
  // the one that this network was made of. Throws Error{InvalidArgument} before every layer has
  // weights.
  std::vector<planner::WorkCost> planned_work(const planner::NetworkPlan& plan) const;

  // The program, its parts in the order of Program::scopes, and the memory that it needs.
  const Program& program() const;
  std::span<const NetworkPart> parts() const;
  device::MemoryUse memory() const;
  Bytes high_water() const;

 private:
  struct State;
  MovableState<State> state_;
};

}  // namespace tessera::runtime
