#pragma once

#include "tessera/base/movable_state.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/runtime/pass_spec.hpp"
#include "tessera/runtime/program.hpp"
#include "tessera/runtime/tile_options.hpp"

namespace tessera::runtime {

// The data that move so that every non-zero meets every z.
enum class GradWExchange {
  Inputs,  // the dense operands travel; words and sums stay on their tile
  Buckets  // words and sums travel together and return to their home tile at the end
};

// GradW as one program: dR = dQ[x][z] * transpose(S[y][z]) at the places of R, for each group.
// Every group has separate tiles, and all groups take every step together.
//
// The program has these phases, in this order. Shapes are those of one tile.
//   exchange     writes q [x rows][z] and s [y rows][z] from the home shares; with Inputs also the
//                words, to the tile that works on them. One exchange.
//   rearrange    brings the operands into block order, only for the method that needs it. One
//                compute step.
//   multiply     clears the sums [values], then reads words, q and s and adds to the sums. Buckets:
//                the tile's own part of z, in one compute step. Inputs: a round for every part of
//                z of the cell, each an exchange (the operands of that part) and a compute step.
//   propagate    Buckets: words and sums shift by one tile, and each tile adds the products of its
//                own operands. Inputs: the operands shift in the opposite direction, again with a
//                round for every part of z.
//   cast         casts the sums to the layer's type, if it is another one. One compute step.
//
// A GradWPass is built once for a plan and runs any pattern encoded for the same grid. Only one run
// may be active at a time.
class GradWPass {
 public:
  // Throws Error{LimitExceeded} if the memory of a tile cannot hold the program. The executor must
  // outlive the pass.
  GradWPass(const PassSpec& spec, GradWExchange exchange, const device::Machine& machine,
            device::ExchangeMode mode, Executor& executor);
  ~GradWPass();
  GradWPass(GradWPass&&) noexcept;

  // The operands q_grad [groups * x][z] and s [groups * y][z], contiguous along z, in the padded
  // sizes of the grid; and the result, gradients [groups][buckets][values_per_bucket] in bucket
  // order, where padding becomes 0. All are in the layer's type.
  struct Operands {
    device::ByteRows q_grad, s;
    std::byte* gradients = nullptr;
  };

  // Computes the gradients. Returns false if options.stop ended the run. `ledger` is overwritten
  // with the steps that ran.
  bool run(const BucketImage& image, const Operands& operands, const PassOptions& options,
           device::Ledger& ledger);

  // Returns the memory that changed during the last run, if it had a self_check and finished.
  const device::Damage& damage() const;

  // Returns the most memory that any tile needs.
  Bytes high_water() const;

  // Returns the memory that the program needs, by phase and buffer.
  device::MemoryUse memory() const;

  const Program& program() const;

  // Returns memory() of such a pass without the check that a tile can hold it.
  static device::MemoryUse memory_of(const PassSpec& spec, GradWExchange exchange,
                                     const device::Machine& machine);

  struct Base;  // the pass without its machine (internal/grad_w_base.hpp)

 private:
  struct Own;
  MovableState<Own> own_;
};

}  // namespace tessera::runtime
