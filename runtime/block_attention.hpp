#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/base/movable_state.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/runtime/block_softmax.hpp"
#include "tessera/runtime/program.hpp"
#include "tessera/runtime/tile_options.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::runtime {

// One program of attention: its name, its cost in the last run, and the program.
struct AttentionStep {
  std::string_view name;  // valid as long as the program
  device::Ledger ledger;
  const Program* program = nullptr;  // of the attention, which must outlive this pointer
};

// The cost of a direction, program by program in their order.
struct AttentionCost {
  std::vector<AttentionStep> steps;

  Cycles total() const;

  // Returns a table with one row for each program and one for their sum: cycles of multiplying and
  // activating, of exchanges, of everything else, and all.
  std::string table() const;
};

// Block-sparse attention on a modelled machine, a head for each group:
//
//   S = scale * Q * transpose(K) at the mask,  P = softmax of the rows of S,  O = P * V
//
// The operands of all heads are stored one below the other: Q and O are [g * x][z], K and V are
// [g * y][z], for a problem with heads g, queries x, keys y and the size z of a head. The layer's
// GradW makes S, its Fwd and GradA multiply by P and by the gradient of S, and BlockSoftmax runs
// between them on values that stay in the buckets of the layer. A mask of its own for each head
// says what is kept, with or without triangles inside its blocks (sparse/block_mask.hpp).
//
// Programs between which the host only passes values on, in bucket order, are charged nothing for
// it. One thread at a time uses an object.
class BlockAttention {
 public:
  // Plans a layer with all passes for these masks, in one layout whose buckets travel in GradW so
  // that values stay on their tiles, and compiles the softmax. `problem` needs grad_a and grad_w;
  // its density is not used. The executor must outlive the object. Throws the errors of
  // planner::plan_or_throw, FullyConnected and BlockSoftmax, Error{LimitExceeded} with the message
  // of a Misfit, and Error{InvalidArgument} for constraints that ask for a dense plan or for
  // travelling operands, for a mask of another shape than the problem's, and for one that keeps a
  // key which is only padding of the last block.
  BlockAttention(const Problem& problem, std::span<const sparse::Csr<float>> masks, float scale,
                 const device::Machine& machine, device::ExchangeMode mode, Executor& executor,
                 planner::Options options = {});
  ~BlockAttention();
  BlockAttention(BlockAttention&&) noexcept;

  // Writes o from q, k and v, and keeps P for backward(). T is the C++ type of the problem's data
  // type. Throws Error{InvalidArgument} for another T and for operands of another shape.
  template <class T>
  AttentionCost forward(MatrixView<const T> q, MatrixView<const T> k, MatrixView<const T> v,
                        MatrixView<T> o) {
    return cost_of_whole<AttentionCost>(
        [&](AttentionCost& cost) { return forward<T>(q, k, v, o, PassOptions(), cost); });
  }

  // Writes the gradients of q, k and v from that of o, for the operands of the last forward().
  // Throws Error{InvalidArgument} before the first one.
  template <class T>
  AttentionCost backward(MatrixView<const T> q, MatrixView<const T> k, MatrixView<const T> v,
                         MatrixView<const T> o_grad, MatrixView<T> q_grad, MatrixView<T> k_grad,
                         MatrixView<T> v_grad) {
    return cost_of_whole<AttentionCost>([&](AttentionCost& cost) {
      return backward<T>(q, k, v, o_grad, q_grad, k_grad, v_grad, PassOptions(), cost);
    });
  }

  // The same with options, which every program takes; steps are counted in each of them from 0, and
  // a self-check stops at the first program that is wrong. They return false if options.stop ended
  // a program. Throw Error{InvalidArgument} for a fault and for figures of tiles: the layer and the
  // softmax take these.
  template <class T>
  [[nodiscard]] bool forward(MatrixView<const T> q, MatrixView<const T> k, MatrixView<const T> v,
                             MatrixView<T> o, const PassOptions& options, AttentionCost& cost);
  template <class T>
  [[nodiscard]] bool backward(MatrixView<const T> q, MatrixView<const T> k, MatrixView<const T> v,
                              MatrixView<const T> o_grad, MatrixView<T> q_grad,
                              MatrixView<T> k_grad, MatrixView<T> v_grad,
                              const PassOptions& options, AttentionCost& cost);

  // Return the planned cycles of a direction: those of the layer's passes, which depend on the
  // pattern, and of the softmax, which are exact.
  Cycles planned_forward() const;
  Cycles planned_backward() const;

  // Returns the plan of the layer.
  const planner::Plan& plan() const;

  // Returns the layer, whose pattern is that of the masks, and the softmax.
  const FullyConnected& layer() const;
  const BlockSoftmax& softmax() const;

  // Returns the most memory that any tile needs in any program.
  Bytes high_water() const;

 private:
  struct State;
  MovableState<State> state_;
};

}  // namespace tessera::runtime
