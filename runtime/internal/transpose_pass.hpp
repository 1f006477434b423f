#pragma once

#include "tessera/base/movable_state.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/planner/matmul.hpp"
#include "tessera/runtime/program.hpp"
#include "tessera/runtime/tile_options.hpp"

namespace tessera::runtime::internal {

// Transposes a dense operand on the machine, as planner::TransposePlan says:
//   arrange    every tile puts its run of the operand in the order of the parts; charged alone,
//              because the caller's memory is read in place
//   exchange   every tile with a part receives it, from as many tiles as hold it
//   transpose  and writes its transpose
// The result is spread over the tiles as parts, and the pass after it arranges these like runs.
class TransposePass {
 public:
  // `resident` are bytes of every tile that are not available: the buckets of the layer. Throws
  // Error{LimitExceeded} if the memory of a tile cannot hold the program. The executor must outlive
  // the pass.
  TransposePass(const planner::TransposePlan& plan, Bytes resident, const device::Machine& machine,
                device::ExchangeMode mode, Executor& executor);
  ~TransposePass();
  TransposePass(TransposePass&&) noexcept;

  // Writes to [groups * cols][rows] from [groups * rows][cols]; both have contiguous rows. Returns
  // false if options.stop ended the run. `ledger` is overwritten.
  bool run(device::ByteRows from, device::ByteRows to, const PassOptions& options,
           device::Ledger& ledger);

  // Returns the steps of a full run.
  static constexpr std::int64_t kSteps = 3;

  // Returns the memory that changed during the last run, if it had a self_check and finished.
  const device::Damage& damage() const;
  const Program& program() const;
  Bytes high_water() const;

 private:
  struct State;
  MovableState<State> state_;
};

}  // namespace tessera::runtime::internal
