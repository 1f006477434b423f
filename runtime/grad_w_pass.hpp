#pragma once

#include <memory>

#include "tessera/device/engine.hpp"
#include "tessera/runtime/pass_spec.hpp"
#include "tessera/runtime/program.hpp"
#include "tessera/runtime/run_options.hpp"

namespace tessera::runtime {

// What moves so that every non-zero meets every z.
enum class GradWExchange {
  Inputs,  // the dense operands travel; words and sums stay on their tile
  Buckets  // words and sums travel together and come home at the end
};

// GradW: dR = (dQ[x][z] * transpose(S[y][z])) at the places of R, for each group, as one program:
// all groups take every step together, each on tiles of its own.
// Phases, in order (shapes are those of one tile):
//   pre-arrange  writes  q [x rows][z], s [y rows][z] from the home shares; with Inputs also the
//                        words on the tile that works on them            one exchange
//   rearrange    only where the method wants operands in block order             one compute step
//   distribute   reads   words, q, s; writes sums [values], cleared first
//                Buckets: the own z, one compute step. Inputs: a round for every z of the cell, an
//                exchange (the operands of that z) and a compute step each
//   propagate    Buckets: words and sums shift by one, the tile adds what its own operands give;
//                Inputs: operands shift the other way, again a round for every z
//   cast         sums to the layer's type                                        one compute step
// Built once for a plan; runs any pattern encoded for the same grid. One run at a time.
class GradWPass {
 public:
  // Error{LimitExceeded} when a tile's memory cannot hold the program.
  GradWPass(const PassSpec& spec, GradWExchange exchange, const device::Machine& machine,
            device::ExchangeMode mode, Executor& executor);
  ~GradWPass();
  GradWPass(GradWPass&&) noexcept;

  // q_grad [groups * x][z] and s [groups * y][z] in the layer's type, sizes of the grid, z
  // contiguous. gradients [groups][buckets][values_per_bucket] in the layer's type, bucket order;
  // padding becomes 0.
  // False when options.stop said so. The ledger is that of the steps that ran.
  struct Operands {
    device::ByteRows q_grad, s;
    std::byte* gradients = nullptr;
  };
  bool run(const BucketImage& image, const Operands& operands, const RunOptions& options,
           device::Ledger& ledger);
  Bytes high_water() const;
  device::MemoryUse memory() const;
  const Program& program() const;

  // What a tile needs, without the check that it has that.
  static device::MemoryUse memory_of(const PassSpec& spec, GradWExchange exchange,
                                     const device::Machine& machine);

  struct Base;

 private:
  std::unique_ptr<Base> state_;
};

}  // namespace tessera::runtime
