#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "tessera/base/dims.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/distributed/communicator.hpp"
#include "tessera/distributed/layer.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::distributed {

// Returns the values that a rank receives in a pass of a ReplicatedLayer, on average: with P ranks
// and c replicas y z / c (1 - c / P) of S and x z c / P (1 - 1 / c) of partial sums in Fwd; the
// same of dQ instead of the sums in GradW; and in GradA the same with x and y exchanged, and y z /
// P more unless c * c is P. With one replica Fwd is that of a DistributedLayer. `replicas` divides
// `ranks`.
double received_values(const Dims& size, int ranks, int replicas, Pass pass = Pass::Fwd);

// Returns the number of replicas, a divisor of `ranks`, with the fewest received_values in all
// passes of the problem; among equal ones the fewest replicas. It depends on the number of ranks,
// and so do bits if it is used: give a number of your own to keep them.
int cheapest_replicas(const Problem& problem, int ranks);

// A layer of floats on many ranks, which moves fewer bytes than a DistributedLayer (in the
// literature: 1.5D). The columns of R are cut into `replicas` parts, and the rows into
// ranks / replicas runs; a rank has one run of one part. In Fwd it gathers the rows of S of its
// part, and the ranks of a run add up their partial sums in the order of the parts. GradA is Fwd of
// the transpose, whose rows and columns are cut in the same way, so the rank also has a run of a
// part of that. GradW gathers S of the part and dQ of the run, and adds nothing up across ranks. So
// bits depend on the number of replicas, which is chosen with the layer, and not on the number of
// ranks.
//
// All functions that are not const are collective. They throw Error{InvalidArgument} for operands
// of other shapes, for passes that the problem does not have, and before the first weights.
class ReplicatedLayer {
 public:
  // `replicas` is their number, or 0 for cheapest_replicas. Throws Error{InvalidArgument} as
  // DistributedLayer does, for another type than float, and unless `replicas` divides the number of
  // ranks.
  ReplicatedLayer(const Problem& problem, const host::HostCpu& cpu, Executor& executor,
                  Communicator& ranks, int replicas = 0);
  ~ReplicatedLayer();

  // Takes the whole R, the same on every rank. Throws Error{InvalidArgument} for a matrix that is
  // not the layer's, and for one with a part of the columns (or, for GradA, of the rows) that is
  // empty, because there are fewer block columns than replicas.
  void set_weights(const sparse::Csr<float>& weights);

  // Sets the values of this rank's part, in the order of weights(). For GradA they travel to the
  // ranks with their part of the transpose.
  void set_values(std::span<const float> values);

  // Writes q, this rank's rows of Q, from s, its rows of S.
  void forward(MatrixView<const float> s, MatrixView<float> q);

  // Writes s_grad, this rank's rows of dS, from q_grad, its rows of dQ.
  void grad_a(MatrixView<const float> q_grad, MatrixView<float> s_grad);

  // Writes the gradients of this rank's values, in the order of weights().
  void grad_w(MatrixView<const float> q_grad, MatrixView<const float> s,
              std::span<float> gradients);

  // Return this rank's rows of Q and S, after set_weights.
  Range outputs() const;
  Range inputs() const;

  // Return the number of replicas; and after set_weights the rows and columns of R of which this
  // rank has the values, in elements, and these values: a matrix of whole blocks.
  int replicas() const;
  Range rows() const;
  Range columns() const;
  const sparse::Csr<float>& weights() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera::distributed
