#pragma once

#include <cstdint>
#include <span>

#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/base/movable_state.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/planner/plan.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/runtime/tile_options.hpp"

namespace tessera::runtime {

// The sizes for which the programs of an embedding are built.
struct EmbeddingOptions {
  // The ids of one run, 1 or more; 0: the batch of the layer's problem. More ids take several runs.
  std::int64_t ids = 0;

  // The different rows of one part of x that a run can look up; 0: the mean of ids that are drawn
  // at random and four standard deviations more. Ids beyond it wait for another run.
  std::int64_t rows_per_part = 0;
};

// Looks up and updates rows of the encoded weights R [x][y] of a layer, the words of an embedding
// table: what PopSparse calls an embedding. The table is tied to the layer: both use the same
// buckets and values, so a row that is updated is in the next pass of the layer.
//
//   embedding_slice       out[i][y] = R[ids[i]][y], 0 where nothing is stored
//   embedding_update_add  R[ids[i]][y] += scale * slices[i][y], where R has non-zeros
//
// The host groups the ids by the part of x that has their row: an id gets a place among the rows of
// its part, and equal ids share one. Both are lists that tiles receive with the dense data. For a
// slice, tiles gather the buckets of their cell, each copies the stored values of the rows for its
// share of the columns, and tiles that own a column receive it from all parts of x and put it in
// the order of the ids. For an update, the owner of a column adds up the slices of each row (in
// float, rounded once to the layer's type), every tile receives those of its part, adds them up at
// the values of its bucket in float, and adds the scaled sum to each value. Blocks that have
// spilled are served as in the passes: for a slice the buckets travel, for an update the slices.
// Cycles depend on the number of ids per run, not on the size of the table alone.
//
// One thread at a time uses an embedding or its layer.
class Embedding {
 public:
  // `layer` was built from the same problem, plan, machine and mode; it and the executor must
  // outlive the embedding. Throws Error{InvalidArgument} for a plan that is dense, which has no
  // buckets, and for options out of range, and Error{LimitExceeded} if the memory of a tile cannot
  // hold a program.
  Embedding(FullyConnected& layer, const Problem& problem, const planner::Plan& plan,
            const device::Machine& machine, device::ExchangeMode mode, Executor& executor,
            const EmbeddingOptions& options = {});
  ~Embedding();
  Embedding(Embedding&&) noexcept;

  // Writes out [ids][y]. Returns the cost of all runs. T is the C++ type of the layer's data type.
  // Each group of the layer is a table of its own, and a call serves one of them, on the tiles of
  // that group: the ledger numbers these from 0. Throws Error{InvalidArgument}, which names the id,
  // for one outside 0 .. x - 1, for a group that the layer does not have, for another T or shape,
  // and before the first set_weights.
  template <class T>
  device::Ledger embedding_slice(std::span<const std::int64_t> ids, MatrixView<T> out,
                                 std::int64_t group = 0) {
    return cost_of_whole(
        [&](device::Ledger& ledger) { return embedding_slice<T>(ids, out, {}, ledger, group); });
  }

  // Does the same with options, whose steps count through all runs. Returns false if options.stop
  // ended it. `ledger` is overwritten. With a self-check every element is compared, bit for bit,
  // with the weights that the layer keeps; another one is Error{CheckFailed}, which names it.
  template <class T>
  [[nodiscard]] bool embedding_slice(std::span<const std::int64_t> ids, MatrixView<T> out,
                                     const PassOptions& options, device::Ledger& ledger,
                                     std::int64_t group = 0);

  // Changes the weights on the machine and those that the layer keeps, which are then the rounded
  // ones, by slices [ids][y]. Ids may be equal. Returns the cost of all runs.
  template <class T>
  device::Ledger embedding_update_add(std::span<const std::int64_t> ids, MatrixView<const T> slices,
                                      float scale, std::int64_t group = 0) {
    return cost_of_whole([&](device::Ledger& ledger) {
      return embedding_update_add<T>(ids, slices, scale, {}, ledger, group);
    });
  }

  // Does the same with options. If options.stop ended it, no weight has changed. With a self-check
  // every new value is computed again on this computer and compared bit for bit; if one is wrong,
  // Error{CheckFailed} names it and no weight has changed.
  template <class T>
  [[nodiscard]] bool embedding_update_add(std::span<const std::int64_t> ids,
                                          MatrixView<const T> slices, float scale,
                                          const PassOptions& options, device::Ledger& ledger,
                                          std::int64_t group = 0);

  // Returns the most memory that any tile needs in either program.
  Bytes high_water() const;

 private:
  struct State;
  MovableState<State> state_;
};

}  // namespace tessera::runtime
