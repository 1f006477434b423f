#pragma once

#include <cstdint>
#include <shared_mutex>
#include <span>

#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/base/process.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/host/sparse_views.hpp"
#include "tessera/host/spmm.hpp"
#include "tessera/sparse/change.hpp"

namespace tessera::host {

// Options of a prepared matrix. The results are right with any of them.
struct PreparedOptions {
  std::int64_t batch =
      256;                 // columns that cells are cut for, at least 1; calls may have any number
  bool transpose = false;  // true: spmm_transposed() may be called; encodes the transpose too
};

// A sparse matrix that is multiplied often: it is encoded once, as the weights of a HostLayer, and
// serves products of any batch, from several threads at the same time. T is float, Half or
// BFloat16.
//
// Invariants:
//   1. Products read the layer under a shared lock, and changes have the lock alone. A product
//      therefore sees the matrix before or after a change, never a part of it.
//   2. A product takes scratch memory from a list, or new memory if the list is empty, and returns
//      it. No other call uses it in between.
//
// Example: Prepared<float> weights(a, *executor); weights.spmm(s.view(), q.view(), *executor).
template <class T>
class Prepared {
 public:
  // Encodes a matrix whose columns ascend in each row, none twice. The lists are not needed any
  // more. `executor` runs this and all changes, and must outlive the object. Throws
  // Error{InvalidArgument} for an empty side or a batch below 1, and Error{BadInput} that names the
  // place if the lists are not those of such a matrix. O(values) on all threads.
  template <class Index, class Position>
  Prepared(const CompressedRows<T, Index, Position>& a, Executor& executor,
           const PreparedOptions& options = {});
  ~Prepared();
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;

  // Computes C = A * B with what the options add, or C = transpose(A) * B, as spmm() does: the same
  // shapes, errors and epilogues. The old values of C are the last term. The bits do not depend on
  // the threads, nor on other calls. Allocates if no call that has ended had as many columns.
  // Thread-safe if the executors differ; `executor` may be the one of the constructor while no
  // change runs. Cells are cut for the threads of the constructor's, so that few threads can share
  // those of one.
  void spmm(MatrixView<const T> b, MatrixView<T> c, Executor& executor,
            const SpmmOptions<T>& options = {}) const;
  void spmm_transposed(MatrixView<const T> b, MatrixView<T> c, Executor& executor,
                       const SpmmOptions<T>& options = {}) const;

  // Replaces the values, in the order of the lists, without encoding. Waits for running products.
  // Throws Error{InvalidArgument} if they are not as many. O(values).
  void set_values(std::span<const T> values);

  // Adds and removes places in the cells that have them (HostLayer::update_weights). Waits for
  // running products.
  void update(const sparse::PatternChange& change);

  // Returns the matrix as it is now. Not while a change runs.
  const sparse::Csr<float>& matrix() const { return layer_.weights(); }
  std::int64_t memory_bytes() const { return layer_.memory_bytes(); }

 private:
  struct Pool;
  void product(Pass pass, MatrixView<const T> in, MatrixView<T> out, Executor& executor,
               const SpmmOptions<T>& options) const;

  HostLayer layer_;
  mutable OfProcess<std::shared_mutex> mutex_;  // of layer_
  mutable OfProcess<Pool> pool_;
};

}  // namespace tessera::host
