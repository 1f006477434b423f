#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/distributed/communicator.hpp"
#include "tessera/distributed/tree_sum.hpp"
#include "tessera/host/layer.hpp"

namespace tessera::distributed {

// A layer whose batch is split over ranks: every rank has all weights and some columns of S, Q and
// their gradients. Forward and GradA need no other rank. The batch is cut into a fixed number of
// leaves; GradW is computed leaf by leaf and added up by a TreeSum, so gradients have the same bits
// for every number of ranks, which are in general not those of a HostLayer of the whole batch. An
// optimiser then makes the same step on every rank.
class BatchLayer {
 public:
  // The number of leaves does not depend on the ranks: it decides the bits of gradients.
  static constexpr std::int64_t kLeaves = 16;

  // The problem's z is the whole batch. Throws Error{InvalidArgument} as HostLayer does, and for a
  // batch that is odd, because kernels have other last bits for a single column. Executor and
  // communicator must outlive the layer.
  BatchLayer(const Problem& problem, const host::HostCpu& cpu, Executor& executor,
             Communicator& ranks, std::int64_t leaves = kLeaves);

  // Returns the layer of this rank, which has all weights: set_weights, set_values, change_values
  // and update_weights are called on it, on every rank with the same arguments, and forward and
  // grad_a with this rank's columns.
  host::HostLayer& local() { return local_; }

  // Returns this rank's columns of the batch.
  Range columns() const;

  // Writes the gradients of the whole batch from this rank's columns of dQ and S. Collective. The
  // first call compares problem, leaves and weights of all ranks (agreement.hpp).
  template <class T>
  void grad_w(MatrixView<const T> q_grad, MatrixView<const T> s, std::span<float> gradients);

 private:
  Range leaf_columns(std::int64_t leaf) const;

  Problem problem_;
  Communicator& ranks_;
  std::int64_t leaves_;
  Range own_;  // leaves
  host::HostLayer local_;
  std::vector<float> leaf_;  // gradients of one leaf
  bool is_compared_ = false;
};

}  // namespace tessera::distributed
