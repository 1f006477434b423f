#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "tessera/base/dims.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/layer/layer.hpp"

namespace tessera::train {

// The part that one process has of a network that several processes train: all weights, and some
// columns of every batch. Batches are cut into leaves, runs of columns, whose sums are added up in
// one tree, so that results have the same bits for every number of processes. All processes call
// the functions that are not const in the same order.
class BatchShare {
 public:
  virtual ~BatchShare() = default;

  // Returns the leaves of this process, ascending and without gaps; none if there are more
  // processes than leaves.
  virtual std::vector<Range> leaves() const = 0;

  // Makes a layer whose operands have the columns of this process, and whose gradients of weights
  // are those of the whole batch. Executor and object must outlive it.
  virtual std::shared_ptr<layer::Layer> make_layer(const Problem& problem, Executor& executor) = 0;

  // Adds up lists of sum.size() numbers, one for each leaf. `by_leaf` has those of this process one
  // after the other.
  virtual void add_up(std::span<const float> by_leaf, std::span<float> sum) = 0;

  // Writes the columns of all processes to a matrix [rows][batch].
  virtual void gather(MatrixView<const float> own, MatrixView<float> all) = 0;

  // Returns true on every process if it is true on any.
  virtual bool any(bool own) = 0;

  // Throws Error{InvalidArgument} on every process unless all have the same text.
  virtual void require_same(std::string_view what, std::string_view text) = 0;

  // Returns the columns of this process.
  Range columns() const {
    const std::vector<Range> own = leaves();
    return own.empty() ? Range{} : Range{own.front().begin, own.back().end};
  }
};

// Returns `own`, or with a share the columns of all processes, which are then in `all`.
inline MatrixView<const float> whole_batch(BatchShare* share, MatrixView<const float> own,
                                           Matrix<float>& all, std::int64_t batch) {
  if (share == nullptr) return own;
  if (all.rows() != own.rows || all.cols() != batch) all = Matrix<float>(own.rows, batch);
  share->gather(own, all.view());
  return all.view();
}

}  // namespace tessera::train
