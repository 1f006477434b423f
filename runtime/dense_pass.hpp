#pragma once

#include <memory>
#include <string>

#include "tessera/device/engine.hpp"
#include "tessera/runtime/pass_spec.hpp"

namespace tessera::runtime {

// Where an operand lies before a pass.
//   Sharers  each of the tiles that need a slice holds an equal share of its rows
//   Linear   spread over all tiles of the machine, batch column by batch column, whatever the plan:
//            how PopSparse makes its tensors. Who sends and how many do is modelled; a tile's
//            memory is that of Sharers.
enum class OperandHomes { Sharers, Linear };

// The two passes with a dense result, as one program each:
//   Fwd    Q[x][z]  = R * S[y][z]                   partial sums over y
//   GradA  dS[y][z] = transpose(R) * dQ[x][z]       partial sums over x
// for each group; all groups take every step together, each on tiles of its own.
// Phases, in order (shapes are those of one tile; `in` is y for Fwd and x for GradA, `out` the
// other):
//   transpose    GradA of blocks: turns the values of its bucket over        one compute step
//   pre-arrange  reads   the tile's home share of the operand, the other buckets of its cell
//                writes  in [in rows][z], Pz - 1 buckets          one exchange
//   distribute   reads   in, the Pz buckets of the own cell
//                writes  partial [out rows][z], cleared first     one compute step
//   propagate    reads   in, the bucket that arrived; writes partial, added to
//                as many exchanges and compute steps as the pattern needs (propagation.hpp)
//   reduce       reads   everybody's partials of the own share of the result, in tile order
//                writes  out, in the layer's type                 one exchange, one compute step
// Built once for a plan; runs any pattern encoded for the same grid. One run at a time.
class DensePass {
 public:
  // Error{LimitExceeded} when a tile's memory cannot hold the program.
  DensePass(const PassSpec& spec, const device::Machine& machine, device::ExchangeMode mode,
            Executor& executor, OperandHomes homes = OperandHomes::Sharers);
  ~DensePass();
  DensePass(DensePass&&) noexcept;

  // in [groups * in rows][z] and out [groups * out rows][z] in the layer's type, sizes of the grid,
  // z contiguous.
  device::Ledger run(const BucketImage& image, device::ByteRows in, device::ByteRows out);
  Bytes high_water() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera::runtime
