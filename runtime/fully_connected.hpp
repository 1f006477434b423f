#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/codelets/best_places.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/layer/layer.hpp"
#include "tessera/partitioner/buckets.hpp"
#include "tessera/partitioner/saved_weights.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/runtime/program.hpp"
#include "tessera/runtime/tile_options.hpp"
#include "tessera/sparse/change.hpp"
#include "tessera/sparse/checked.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::runtime {

struct LargestGradients;  // dense_grad_w.hpp

// A layer (layer/layer.hpp) on a modelled machine. It is planned and built once and then takes any
// number of patterns.
//
// Groups share only the plan: each has separate tiles, and all groups take every step together,
// so a pass takes as long as that of the slowest group. The results of a group have the same bits
// as those of a layer of that group alone, unless the buckets of another group travel farther: sums
// are then taken in the order of the farthest.
//
// Any size is allowed: the layer pads x, y and z. If x or y is no multiple of the problem's block,
// the weights are those of whole blocks (Problem::size_in_blocks); places beyond x or y are
// multiplied by zeros, and their gradient is 0.
//
// Operands are strided views of the caller's memory. They are used in place if they are contiguous
// along z and need no padding, else they are copied. Throws Error{InvalidArgument} for a group that
// the layer does not have and for a call that needs weights before the first set_weights. The work
// of the tiles, and the encoding of new weights, are spread over the executor.
//
// After update_weights blocks may be stored on other tiles of their cell than after set_weights, so
// sums may be rounded differently. It costs partitioner::update and copies of the pattern and of
// the buckets' words; if the machine has other blocks than the problem, also a difference of
// patterns and a refill. It is cheap if few buckets change, and costs as much as set_weights if
// most of them do. One change is prepared at a time: preparing another one drops the first.
//
// The cost of a pass is modelled cycles and counted bytes, which are those of GradA's own layout,
// too: the steps that bring the values there run before those of the pass. options.target may be
// TileOptions (tile_options.hpp). In Share mode a pass that overwrites the ledger of the last one
// allocates nothing, as long as weights and shapes stay the same. Gradients are rounded to the
// layer's type and widened to float.
class FullyConnected : public layer::LayerOf<device::Ledger> {
 public:
  // Builds the programs of all passes in the plan, which must be one for this problem and machine
  // (planner::plan). The executor must outlive the layer. Throws Error{LimitExceeded} if the memory
  // of a tile cannot hold one of the passes.
  FullyConnected(const Problem& problem, const planner::Plan& plan, const device::Machine& machine,
                 device::ExchangeMode mode, Executor& executor);

  using Layer::set_weights;

  // Does what Layer::set_weights does, with options of the encoder. The cell and tile of a misfit
  // are those of its group. Matrices are shared with the caller until values change, and copied
  // only to transpose them for a layout of GradA, to pad them or to cut them into other blocks.
  // Costs partitioner::encode_into and refill.
  std::optional<partitioner::Misfit> set_weights(std::span<const sparse::CheckedCsr<float>> weights,
                                                 const partitioner::EncodeOptions& options);
  std::optional<partitioner::Misfit> set_weights(const sparse::CheckedCsr<float>& weights,
                                                 const partitioner::EncodeOptions& options);

  // Returns the weights as the machine keeps them, for partitioner::describe. Throws
  // Error{InvalidArgument} before the first set_weights, and if the plan is dense without buckets.
  partitioner::SavedWeights saved_weights() const;

  // Takes weights that were encoded before, by a layer of the same problem, plan and machine, with
  // all its results, costs and figures; weights() then has values rounded to the layer's type.
  // Nothing is encoded: words are read once, as decode() reads them. Throws
  // Error{InvalidArgument}, which names the first field that differs, for weights of another
  // layer, and Error{BadInput} if words, patterns and statistics contradict each other. The layer
  // then has the weights it had before.
  void restore_weights(const partitioner::SavedWeights& saved);

  // Returns the cost of a visit and of a step of propagation in Fwd, for
  // EncodeOptions::even_load. A layout of GradA evens its load by its own cost. O(1).
  const partitioner::LoadCost& load_cost() const;

  // Returns the number of serial splits of x in which a dense GradW of the layer runs beside its
  // buckets, as PopSparse plans it (fullyConnectedDenseGradWSerialSplits): the first that fits
  // of 1, 2, 4 and so on, for all groups together, with float sums. Plans in each call; the layer
  // need not have a GradW or weights. Throws Error{NoSolution} if not even one row at a time fits.
  std::int64_t dense_grad_w_splits();

  // Returns the k blocks of a group whose weight gradient dQ * transpose(S) is largest among those
  // that its pattern does not store, from q_grad [g * x][z] and s [g * y][z] of all groups; of
  // equal ones the lower place. The tiles compute the dense gradient in rounds beside the buckets
  // of the layer, and none ever holds all of it (dense_grad_w.hpp, which has the result and the
  // other errors). The layer need not have a GradW. Plans and builds the search in the first call,
  // and again for another k. Throws Error{NoSolution} with the reason if no plan of the search fits
  // beside the buckets.
  template <class T>
  LargestGradients largest_gradients(std::int64_t k, MatrixView<const T> q_grad,
                                     MatrixView<const T> s,
                                     codelets::BlockScore score = codelets::BlockScore::Sum,
                                     std::int64_t group = 0);

  // Does the same with options, in which a step is one of the program of the search; a self-check
  // watches the memory of the tiles. Returns false if options.stop ended the search, which then has
  // found nothing.
  template <class T>
  [[nodiscard]] bool largest_gradients(std::int64_t k, MatrixView<const T> q_grad,
                                       MatrixView<const T> s, codelets::BlockScore score,
                                       std::int64_t group, const PassOptions& options,
                                       LargestGradients& found);

  // Returns the program of a pass. If GradA has a separate layout, its program is the Fwd of
  // transpose(R). Throws Error{InvalidArgument} for a pass that the layer was planned without.
  const Program& program(Pass pass) const;

  // Returns the memory of tiles that this program needs. The buckets of another layout are not
  // included.
  device::MemoryUse memory(Pass pass) const;

  // Returns the buckets of a group in the forward layout.
  const partitioner::Buckets& buckets(std::int64_t group = 0) const;

  // Returns the buckets of a group in the layout that runs the pass. In GradA's own layout they are
  // those of transpose(R).
  const partitioner::Buckets& buckets_of(Pass pass, std::int64_t group = 0) const;

  // Returns the position of each value of weights(group) in encoded_values(group). O(values).
  std::vector<std::int64_t> value_positions(std::int64_t group = 0) const;

  // Returns the values of a group as the forward buckets hold them: [buckets][values_per_bucket] in
  // the layer's type, in the order of buckets(group).source. If the machine has other blocks or
  // sizes than the problem, they include places that the weights do not store. Valid until weights
  // or values change. O(1).
  template <class T>
  std::span<const T> encoded_values(std::int64_t group = 0) const;

  // Returns the figures of all groups' spilled blocks, for a report: counts are sums over groups;
  // the fullest bucket and the number of steps are the largest of any group. Throws
  // Error{InvalidArgument} before the first set_weights.
  partitioner::SpillStats spill() const;

  // Returns the bytes that must be sent to the machine for new patterns, counted over all tiles:
  // meta-information, values, the words that steer propagation and, for a separate layout of GradA,
  // its meta-information and its table. 0 before the first set_weights.
  Bytes pattern_bytes() const;

  // Returns the distance that a pass moves buckets, which is the farthest of any group.
  partitioner::Travel travel() const;

  // Returns the most memory that any tile needs in any pass.
  Bytes high_water() const;

  struct State;  // the layer behind the handle (internal/fully_connected_state.hpp)

 private:
  State& state() const;
};

// Returns the partitioner's view of a plan: the grid of one group. All groups have the same grid.
partitioner::TileGrid tile_grid(const Problem& problem, const planner::Plan& plan,
                                const device::Machine& machine);

}  // namespace tessera::runtime
