#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/base/data_type.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/base/movable_state.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/planner/plan.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/runtime/program.hpp"
#include "tessera/runtime/tile_options.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::runtime {

// The tiles that hold the values of the matrices of all groups before and after a program. The
// shares of all tiles laid one behind the other are places 0, 1, 2 ...
struct ValueHomes {
  std::int64_t per_tile = 0;            // values of a share
  std::vector<TileId> tiles;            // of the shares
  std::vector<std::int64_t> positions;  // [values of all groups], each a place of its own
};

// Returns the homes of the values of a layer's weights: the buckets of its forward layout. The
// layer was built from this problem, plan and machine and has weights. Throws
// Error{InvalidArgument} if the plan is dense.
ValueHomes bucket_homes(const FullyConnected& layer, const Problem& problem,
                        const planner::Plan& plan, const device::Machine& machine);

// Everything that a caller can choose about a softmax.
struct BlockSoftmaxOptions {
  // The factor of the scores before the softmax, and of their gradient: 1 / sqrt(head) in
  // attention.
  float scale = 1;

  // The tiles that hold scores and results.
  ValueHomes homes;

  // Bytes of every tile that are not available: words of buckets that stay there.
  Bytes resident = {};
};

// The softmax over the rows of block-sparse matrices, and its gradient, on a modelled machine: what
// PopSparse calls bsSoftmax and bsSoftmaxGrad. A mask says what is kept, with or without zeros
// inside its blocks (sparse/block_mask.hpp). A mask is compiled: rows are dealt to tiles once, the
// longest first, and each to one worker. A program is
//
//   hand over  each row comes to its tile from the tiles that hold its blocks
//   activate   softmax, or its gradient
//   hand over  the results go back to the same places
//
// so cycles depend on masks and homes alone, and not on the numbers. Results have the bits of
// codelets::softmax for every thread and mode. Values are floats in the order of the masks' values,
// group after group; they are rounded to the type on the way in and are of the type on the way out.
// One thread at a time uses an object.
class BlockSoftmax {
 public:
  // Takes a mask for each group, and keeps none. The executor must outlive the object. Throws
  // Error{BadInput} if sparse::check refuses a mask, Error{InvalidArgument} for homes of another
  // number of values or without a place for each, and Error{LimitExceeded} if the memory of a tile
  // cannot hold a program.
  BlockSoftmax(std::span<const sparse::Csr<float>> masks, DataType type,
               const device::Machine& machine, device::ExchangeMode mode, Executor& executor,
               const BlockSoftmaxOptions& options);
  ~BlockSoftmax();
  BlockSoftmax(BlockSoftmax&&) noexcept;

  // Writes the softmax of the scores; `out` may be `scores`. Throws Error{InvalidArgument} for
  // another number of values.
  device::Ledger softmax(std::span<const float> scores, std::span<float> out) {
    return cost_of_whole([&](device::Ledger& ledger) { return softmax(scores, out, {}, ledger); });
  }

  // Writes the gradient of the scores from the softmax and its gradient; `out` may be either.
  device::Ledger gradient(std::span<const float> softmax, std::span<const float> softmax_gradient,
                          std::span<float> out) {
    return cost_of_whole([&](device::Ledger& ledger) {
      return gradient(softmax, softmax_gradient, out, {}, ledger);
    });
  }

  // The same with options. They return false if options.stop ended the run; `out` is then as it
  // was. With a self-check, all results are computed again by the reference kernel and compared bit
  // for bit; a difference is Error{CheckFailed} that names the value.
  [[nodiscard]] bool softmax(std::span<const float> scores, std::span<float> out,
                             const PassOptions& options, device::Ledger& ledger);
  [[nodiscard]] bool gradient(std::span<const float> softmax,
                              std::span<const float> softmax_gradient, std::span<float> out,
                              const PassOptions& options, device::Ledger& ledger);

  const Program& program() const;
  const Program& gradient_program() const;

  // Return the cycles of every run: the prices of both programs before they run.
  Cycles planned() const;
  Cycles gradient_planned() const;

  // Returns the most memory that any tile needs in either program.
  Bytes high_water() const;

 private:
  struct State;
  MovableState<State> state_;
};

}  // namespace tessera::runtime
