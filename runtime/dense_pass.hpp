#pragma once

#include <memory>

#include "tessera/device/engine.hpp"
#include "tessera/runtime/pass_spec.hpp"
#include "tessera/runtime/program.hpp"
#include "tessera/runtime/run_options.hpp"

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
// other; program() says what each reads and writes):
//   transpose    GradA of blocks: turns the values of its bucket over        one compute step
//   pre-arrange  in [in rows][z] and the Pz - 1 other buckets of its cell    one exchange
//   distribute   partial [out rows][z] from `in` and the Pz buckets          one compute step
//   propagate    adds to partial what the bucket that arrived holds for the tile's cell; as many
//                exchanges and compute steps as the pattern needs (propagation.hpp)
//   reduce       out, in the layer's type, from everybody's partials of the own share, in tile
//                order                                            one exchange, one compute step
// Built once for a plan; runs any pattern encoded for the same grid. One run at a time.
class DensePass {
 public:
  // Error{LimitExceeded} when a tile's memory cannot hold the program.
  DensePass(const PassSpec& spec, const device::Machine& machine, device::ExchangeMode mode,
            Executor& executor, OperandHomes homes = OperandHomes::Sharers);
  ~DensePass();
  DensePass(DensePass&&) noexcept;

  // in [groups * in rows][z] and out [groups * out rows][z] in the layer's type, sizes of the grid,
  // z contiguous. False when options.stop said so. The ledger is that of the steps that ran.
  bool run(const BucketImage& image, device::ByteRows in, device::ByteRows out,
           const RunOptions& options, device::Ledger& ledger);
  Bytes high_water() const;
  device::MemoryUse memory() const;
  const Program& program() const;

  // What a tile needs, without the check that it has that.
  static device::MemoryUse memory_of(const PassSpec& spec, const device::Machine& machine);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera::runtime
