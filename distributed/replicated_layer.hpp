#pragma once

#include <cstdint>
#include <memory>

#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/distributed/communicator.hpp"
#include "tessera/distributed/layer.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::distributed {

// Returns the values that a rank receives in a forward pass of a ReplicatedLayer, on average: with
// P ranks and c replicas y z / c (1 - c / P) of S and x z c / P (1 - 1 / c) of partial sums. With
// one replica it is that of a DistributedLayer. `replicas` divides `ranks`.
double received_values(const Dims& size, int ranks, int replicas);

// Returns the number of replicas, a divisor of `ranks`, with the fewest received_values; among
// equal ones the fewest replicas. It depends on the number of ranks, and so do bits if it is used.
int cheapest_replicas(const Dims& size, int ranks);

// The forward pass of a layer of floats on many ranks, which moves fewer bytes than a
// DistributedLayer (in the literature: 1.5D). The columns of R are cut into `replicas` parts, and
// the rows into ranks / replicas runs; a rank has one run of one part. It gathers the rows of S of
// its part, and the ranks of a run add up their partial sums in the order of the parts. So bits
// depend on the number of replicas, which is chosen with it, and not on the number of ranks.
class ReplicatedLayer {
 public:
  // Throws Error{InvalidArgument} as DistributedLayer does, for another type than float, for
  // backward passes, and unless `replicas` divides the number of ranks.
  ReplicatedLayer(const Problem& problem, const host::HostCpu& cpu, Executor& executor,
                  Communicator& ranks, int replicas);
  ~ReplicatedLayer();

  // Takes the whole R, the same on every rank. Collective, as forward is. Throws
  // Error{InvalidArgument} for a matrix that is not the layer's, and for one with a part of the
  // columns that is empty, because there are fewer block columns than replicas.
  void set_weights(const sparse::Csr<float>& weights);

  // Writes q, this rank's rows of Q, from s, its rows of S.
  void forward(MatrixView<const float> s, MatrixView<float> q);

  // Return this rank's rows of Q and S, after set_weights.
  Range outputs() const;
  Range inputs() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera::distributed
