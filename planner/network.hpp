#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/placement.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/base/units.hpp"
#include "tessera/codelets/activation.hpp"
#include "tessera/codelets/loss.hpp"
#include "tessera/codelets/optimiser.hpp"

namespace tessera::planner {

// A fully connected layer of a network: outputs = activation(R * inputs + bias).
struct NetworkLayer {
  std::int64_t outputs = 0, inputs = 0;
  BlockShape block = {};  // of R
  double density = 1;     // non-zeros / all of R that the plan expects, in [0, 1]
  bool bias = true;
  codelets::ActivationRule activation = {};

  // True: all of R is stored and multiplied without buckets, by a dense plan. The block is then
  // 1 x 1 and the density 1.
  bool dense = false;

  // True: in a training step, results are not kept for the backward passes but computed again in
  // front of them, which takes cycles and saves memory. Not of the last layer, whose results are
  // used at once, nor of two layers in a row.
  bool recompute = false;

  // The tiles that hold the operands S and dQ before the passes of the layer.
  //   AsLeft      those on which the passes beside it have added them up; nothing is handed over
  //   AtHome      those that need a slice, equal shares of it
  //   EvenSpread  all tiles of the machine, equal runs of each operand
  // An exchange brings an operand to homes of the last two kinds, and they need memory until GradW
  // has read it. Inputs of the network are loaded to the shares of AtHome if the first layer says
  // AsLeft.
  Placement operands = Placement::AsLeft;

  friend bool operator==(const NetworkLayer&, const NetworkLayer&) = default;

  // Returns true if results and their gradients take a step of their own for bias or activation.
  bool has_activation_step() const { return bias || activation.kind != codelets::Activation::None; }
};

// A network: its layers from the first to the last, each with as many inputs as the one before has
// outputs. With a loss it is a training step; without one it computes the outputs.
struct NetworkSpec {
  std::vector<NetworkLayer> layers;
  std::int64_t batch = 0;  // columns of inputs and outputs
  DataType data_type = DataType::Float;
  DataType partials_type = DataType::Float;
  std::optional<codelets::Loss> loss = {};
  codelets::Optimiser optimiser = {};  // with a loss, of weights and biases; these do not decay

  friend bool operator==(const NetworkSpec&, const NetworkSpec&) = default;
};

// Throws Error{InvalidArgument}, which names layer, field, value and legal range.
void check(const NetworkSpec& spec);

// Returns the problem of a layer, counted from 0, with the passes that the network needs: a
// training step needs GradW of every layer, and GradA of all but the first.
Problem problem_of(const NetworkSpec& spec, std::int64_t layer);

// Returns the problems of all layers.
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
  Update,        // of weights
  UpdateBiases,  // of all layers at once
  Rehome,        // of the new values to the layer's second layout
  Recompute      // Fwd and activation a second time, in front of the backward passes
};
// "hand over"; the text is valid as long as the program.
std::string_view to_string(NetworkWork work);

// Returns the pass of a layer that a kind of work runs, if it runs one. Recompute runs Fwd, and the
// activation after it.
std::optional<Pass> pass_of(NetworkWork work);

// The planned cycles of one kind of work for one layer, counted from 0.
struct WorkCost {
  NetworkWork work = NetworkWork::Fwd;
  std::int64_t layer = 0;  // of UpdateBiases 0
  Cycles cycles;

  friend bool operator==(const WorkCost&, const WorkCost&) = default;
};

// Returns the sum over the work.
Cycles sum_of(std::span<const WorkCost> work);

}  // namespace tessera::planner
