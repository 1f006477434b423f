#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/codelets/activation.hpp"
#include "tessera/codelets/loss.hpp"
#include "tessera/codelets/update.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/partitioner/buckets.hpp"
#include "tessera/planner/plan.hpp"
#include "tessera/runtime/program.hpp"
#include "tessera/runtime/run_options.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::runtime {

// A sparse fully connected layer of a network: outputs = activation(R * inputs + bias).
struct NetworkLayer {
  std::int64_t outputs = 0, inputs = 0;
  BlockShape block = {};  // of R
  double density = 1;     // non-zeros / all of R that the plan expects, in [0, 1]
  bool bias = true;
  codelets::ActivationRule activation = {};

  friend bool operator==(const NetworkLayer&, const NetworkLayer&) = default;
};

// A network: its layers from the first to the last, each with as many inputs as the one before has
// outputs. With a loss its program is a training step; without one it computes the outputs.
struct NetworkSpec {
  std::vector<NetworkLayer> layers;
  std::int64_t batch = 0;  // columns of inputs and outputs
  DataType data_type = DataType::Float;
  DataType partials_type = DataType::Float;
  std::optional<codelets::Loss> loss = {};
  codelets::UpdateRule update = {};  // of weights and biases, with a loss

  friend bool operator==(const NetworkSpec&, const NetworkSpec&) = default;
};

// Throws Error{InvalidArgument}, which names layer, field, value and legal range.
void check(const NetworkSpec& spec);

// Returns the problem of each layer, with the passes that the network needs: a training step needs
// GradW of every layer, and GradA of all but the first.
std::vector<Problem> problems_of(const NetworkSpec& spec);

// The kinds of work in a network's program.
enum class NetworkWork {
  Parameters,  // brought from the host before the first step, without cost
  Fwd,
  Activate,  // bias and activation
  HandOver,  // of a result to the layer that uses it next, and of a gradient to its layer
  Loss,
  Derivative,  // of the activation
  GradA,
  GradW,
  Update  // of weights and bias
};
// "hand over"; the text is valid as long as the program.
std::string_view to_string(NetworkWork work);

// A part of a network's program: Program::scopes has its name.
struct NetworkPart {
  NetworkWork work = NetworkWork::Fwd;
  std::int64_t layer = 0;  // counted from 0; of Loss the last one

  friend bool operator==(const NetworkPart&, const NetworkPart&) = default;
};

// The data of one run. Rows are features and columns are the batch.
struct NetworkBatch {
  MatrixView<const float> inputs;             // [inputs][batch]
  std::span<const std::int32_t> labels = {};  // [batch], for SoftmaxCrossEntropy
  MatrixView<const float> targets = {};       // [outputs][batch], for MeanSquaredError
};

// The cost of one run: all steps, and the part of the program that each belongs to.
struct NetworkCost {
  device::Ledger ledger;
  std::vector<int> part_of;  // [steps] index into Network::parts()

  // Returns the cycles of the steps of one part, with their barriers and launches.
  Cycles of(int part) const;
};

// A network on a modelled machine, as one program: all layers stay in the tiles' memory, results
// go from tile to tile, and weights and biases are updated where they are. Every step is run and
// charged; only the inputs, labels and parameters are loaded, and results collected, without cost.
//
// Fwd leaves its result on the tiles that computed it. These add the bias and apply the activation,
// and one exchange hands the result over to the tiles that hold operands of the next layer, where
// it also stays for GradW. The loss is computed with whole columns on a tile. Backward, the
// gradient of a result goes to where that result is, is multiplied by the derivative there, and
// goes on to the tiles that hold operands of GradA and GradW. Gradients of weights stay in the
// order of the buckets, and each tile updates the values of its own bucket. The gradient of a bias
// is summed up on the tiles that own its rows, which update it and send it back.
//
// Results and ledgers have the same bits for any number of threads and both exchange modes. One
// thread at a time may use a network.
class Network {
 public:
  // Builds the program. `plans` has a plan for each of problems_of(spec), with one layout (options
  // perPassPlans false, planConstraints.useDense false) and operands at home (operandPlacement
  // "at-home"). The executor must outlive the network. Throws Error{InvalidArgument} for other
  // plans, and Error{LimitExceeded}, which names tile, step and largest buffers, if the memory of a
  // tile cannot hold the program. Weights and biases are missing and 0 at first.
  Network(const NetworkSpec& spec, std::span<const planner::Plan> plans,
          const device::Machine& machine, device::ExchangeMode mode, Executor& executor);
  ~Network();
  Network(Network&&) noexcept;

  const NetworkSpec& spec() const;

  // Encodes the weights of a layer, [outputs][inputs] in its block, and sets the states of its
  // optimiser to 0. Returns a misfit if they do not fit the plan's buckets; the layer then keeps
  // the weights that it had.
  std::optional<partitioner::Misfit> set_weights(std::int64_t layer,
                                                 const sparse::Csr<float>& weights);

  // Sets the bias of a layer that has one, [outputs].
  void set_bias(std::int64_t layer, std::span<const float> bias);

  // Return the current parameters of a layer, after the updates of all runs so far.
  sparse::Csr<float> weights(std::int64_t layer) const;
  std::span<const float> bias(std::int64_t layer) const;

  // Runs the program once: a training step if the network has a loss, else the computation of the
  // outputs. Throws Error{InvalidArgument} for a batch that does not belong to the network and
  // before every layer has weights. Returns false if options.stop ended the run; parameters are
  // then those of before. Throws Error{InvalidArgument} for self_check, repair and fault, which are
  // for single layers.
  bool run(const NetworkBatch& batch, const RunOptions& options, NetworkCost& cost);
  NetworkCost run(const NetworkBatch& batch);

  // Returns the loss of the last run.
  float loss() const;

  // Returns the outputs of the last run, [outputs][batch]; empty with a loss.
  const Matrix<float>& outputs() const;

  // The program, its parts in the order of Program::scopes, and the memory that it needs.
  const Program& program() const;
  std::span<const NetworkPart> parts() const;
  device::MemoryUse memory() const;
  Bytes high_water() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera::runtime
