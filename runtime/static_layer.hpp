#pragma once

#include <concepts>
#include <cstdint>
#include <span>

#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/base/movable_state.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/layer/layer.hpp"
#include "tessera/planner/static_plan.hpp"
#include "tessera/runtime/program.hpp"
#include "tessera/runtime/tile_options.hpp"
#include "tessera/sparse/checked.hpp"
#include "tessera/sparse/formats.hpp"
#include "tessera/verify/verify.hpp"

namespace tessera::runtime {

// A layer (layer/layer.hpp) whose pattern stays, on a modelled machine.
//
// The pattern is known when the layer is built, so no words travel and none are searched: each tile
// has constant words, fetches the rows of the operand that it uses, multiplies its blocks, and adds
// its share of the results that several tiles have in parts. Values may change, the pattern may
// not. Rows of R without blocks give zeros.
//
// Groups, sizes that are no multiple of the block or of a vector, operands and the errors of calls
// are as FullyConnected describes. The blocks must have a static kernel: 1x1, 4x4, 8x8 or 16x16.
// Results have the same bits for any number of threads and in both exchange modes. Sums of float
// and of elements are added in float on a tile; blocks of half round every product and every sum to
// half; partial sums of several tiles are added in the type of the layer, in the order of tiles.
//
// The cost of a pass, TileOptions, gradients and allocations are those of FullyConnected.
class StaticLayer : public layer::LayerOf<device::Ledger> {
 public:
  // Builds the programs of Fwd and of the passes that the problem has. `weights` has a matrix
  // [x][y] in the problem's block for each group, and `plans` its plan: one of the pattern, the
  // batch and the machine with the tiles of a group, which are machine.tiles / groups
  // (machine_of_group). The executor must outlive the layer. Throws Error{InvalidArgument} if a
  // plan and its pattern differ, and Error{LimitExceeded} if a tile is too small or if a word of
  // the kernels does not fit the machine's words. Costs time in proportion to the blocks and to the
  // rows that tiles use.
  StaticLayer(const Problem& problem, std::span<const sparse::CheckedCsr<float>> weights,
              std::span<const planner::StaticPlan> plans, const device::Machine& machine,
              device::ExchangeMode mode, Executor& executor);

  // Does the same for a layer of one group.
  StaticLayer(const Problem& problem, const sparse::CheckedCsr<float>& weights,
              const planner::StaticPlan& plan, const device::Machine& machine,
              device::ExchangeMode mode, Executor& executor);

  // Returns the program of a pass. Throws Error{InvalidArgument} for a pass that the problem does
  // not have.
  const Program& program(Pass pass) const;

  // Returns the memory of tiles that this program needs.
  device::MemoryUse memory(Pass pass) const;

  // Returns the most memory that any tile needs in any pass.
  Bytes high_water() const;

 private:
  struct State;
  State& state() const;
};

// Returns the machine for which the plan of one group of a layer is made: it has the group's share
// of the tiles. Throws Error{InvalidArgument} if there are fewer tiles than groups.
device::Machine machine_of_group(const device::Machine& machine, std::int64_t groups);

}  // namespace tessera::runtime
