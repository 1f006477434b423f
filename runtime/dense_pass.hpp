#pragma once

#include "tessera/base/executor.hpp"
#include "tessera/base/movable_state.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/planner/dense_plan.hpp"
#include "tessera/runtime/program.hpp"
#include "tessera/runtime/tile_options.hpp"

namespace tessera::runtime {

// The arrays of a dense pass, groups one below the other, in the layer's type:
//   Fwd    left R [x][y],   right S [y][z],   out Q [x][z]
//   GradA  left R [x][y],   right dQ [x][z],  out dS [y][z]
//   GradW  left transpose(dQ) [z][x], right S [y][z], out dR [x][y]; the plan charges the
//          transposition of both
struct DenseArrays {
  device::ByteRows left, right, out;
};

// A pass with a dense R on a machine, without buckets: the program of a planner::DensePassPlan. A
// run in one round has exactly the cycles that were planned. Results do not depend on threads or
// on the exchange mode.
class DensePass {
 public:
  // Builds the program of `pass`. The executor must outlive it. Throws Error{InvalidArgument} if
  // the plan does not have the pass, and Error{LimitExceeded} if a tile is too small.
  DensePass(const planner::DensePlan& plan, Pass pass, const device::Machine& machine,
            device::ExchangeMode mode, Executor& executor);
  ~DensePass();
  DensePass(DensePass&&) noexcept;

  device::MemoryUse memory() const;
  const Program& program() const;

  // Returns the memory that changed during the last run, if it had a self_check and finished.
  const device::Damage& damage() const;

  // Returns memory() of such a pass without the check that a tile can hold it.
  static device::MemoryUse memory_of(const planner::DensePlan& plan, Pass pass,
                                     const device::Machine& machine);

  // Runs the pass. Returns false if options.stop ended it. With options.self_check the memory of
  // the tiles is watched; the results are not checked here. Throws Error{InvalidArgument} if an
  // array does not have the size of the plan.
  bool run(const DenseArrays& arrays, const PassOptions& options, device::Ledger& ledger);

  struct State;  // internal/dense_state.hpp

 private:
  friend class DenseGradW;  // another end of the same program
  struct Own;
  MovableState<Own> own_;
};

}  // namespace tessera::runtime
