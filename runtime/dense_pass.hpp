#pragma once

#include <memory>

#include "tessera/base/executor.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/planner/dense_plan.hpp"
#include "tessera/runtime/program.hpp"
#include "tessera/runtime/run_options.hpp"

namespace tessera::runtime {

// The arrays of a dense pass, groups one below the other, in the layer's type:
//   Fwd    left R [x][y],   right S [y][z],   out Q [x][z]
//   GradA  left R [x][y],   right dQ [x][z],  out dS [y][z]
//   GradW  left dQ [x][z],  right S [y][z],   out dR [x][y]
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

  // Runs the pass. Returns false if options.stop ended it. Throws Error{InvalidArgument} if an
  // array does not have the size of the plan, and for options.self_check, which dense passes do
  // not have.
  bool run(const DenseArrays& arrays, const RunOptions& options, device::Ledger& ledger);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera::runtime
