#pragma once

#include "tessera/base/movable_state.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/runtime/pass_spec.hpp"
#include "tessera/runtime/program.hpp"
#include "tessera/runtime/tile_options.hpp"

namespace tessera::runtime {

// One of the two passes with a dense result, as one program:
//   Fwd    Q[x][z]  = R * S[y][z]                   partial sums over y
//   GradA  dS[y][z] = transpose(R) * dQ[x][z]       partial sums over x
// for each group. Every group has separate tiles, and all groups take every step together.
//
// The program has these phases, in this order. Shapes are those of one tile; `in` is y for Fwd and
// x for GradA, and `out` is the other. program() lists the buffers that each step reads and writes.
//   arrange      if the operand comes from an even spread over all tiles, its runs are put in the
//                order of the slices. One compute step, and another one at the end for the result.
//   transpose    GradA of blocks only: transposes the blocks of the tile's own bucket. One compute
//                step.
//   exchange     brings `in` [in rows][z] and the Pz - 1 other buckets of the tile's cell. One
//                exchange.
//   multiply     computes partials [out rows][z] from `in` and the Pz buckets. One compute step.
//   propagate    adds to the partials the products of the non-zeros that an arriving bucket holds
//                for the tile's cell. As many exchanges and compute steps as the pattern needs
//                (propagation.hpp).
//   reduce       adds up the partials of all sharing tiles for the tile's own share, in tile order,
//                and casts them to the layer's type. One exchange and one compute step.
//
// A SpmmPass is built once for a plan and runs any pattern encoded for the same grid. Only one run
// may be active at a time.
class SpmmPass {
 public:
  // Throws Error{LimitExceeded} if the memory of a tile cannot hold the program. The executor must
  // outlive the pass.
  SpmmPass(const PassSpec& spec, const device::Machine& machine, device::ExchangeMode mode,
           Executor& executor);
  ~SpmmPass();
  SpmmPass(SpmmPass&&) noexcept;

  // Computes `out` [groups * out rows][z] from `in` [groups * in rows][z]. Both are in the layer's
  // type, have the padded sizes of the grid and are contiguous along z. Returns false if
  // options.stop ended the run. `ledger` is overwritten with the steps that ran.
  bool run(const BucketImage& image, device::ByteRows in, device::ByteRows out,
           const PassOptions& options, device::Ledger& ledger);

  // Returns the memory that changed during the last run, if it had a self_check and finished.
  const device::Damage& damage() const;

  // Returns the most memory that any tile needs.
  Bytes high_water() const;

  // Returns the memory that the program needs, by phase and buffer.
  device::MemoryUse memory() const;

  const Program& program() const;

  // Returns memory() of such a pass without the check that a tile can hold it.
  static device::MemoryUse memory_of(const PassSpec& spec, const device::Machine& machine);

  struct State;  // the pass without its machine (internal/spmm_state.hpp)

 private:
  struct Own;
  MovableState<Own> own_;
};

}  // namespace tessera::runtime
