#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "tessera/device/engine.hpp"
#include "tessera/partitioner/tile_grid.hpp"
#include "tessera/runtime/run_options.hpp"

namespace tessera::runtime::internal {

// The two layouts between which values of R go. `to` is the grid of transpose(R).
struct RehomeSpec {
  partitioner::TileGrid from, to;  // of one group each
  std::int64_t groups = 1;
};

// Brings R's values from the buckets of one layout to those of another, on the machine:
//   gather   each tile of the second layout receives the value buckets of every cell of the first
//            that its own cell meets: one exchange, known with the plan
//   unpack   it copies from them what belongs into its own bucket, by a table: one compute step
//   pass on  only where a pattern spills, so that a value is in no bucket that was gathered: all
//            buckets go round all tiles, and each tile picks out what is its own; an exchange and a
//            compute step a turn, as many as the farthest value needs
// The table has a word of 32 bits for each value of a bucket of the second layout. It stays on its
// tile; the host makes it, and says how many turns there are, when the pattern changes.
class RehomePass {
 public:
  // Error{LimitExceeded} when a tile's memory cannot hold the program.
  RehomePass(const RehomeSpec& spec, const device::Machine& machine, device::ExchangeMode mode,
             Executor& executor);
  ~RehomePass();
  RehomePass(RehomePass&&) noexcept;

  // For each value of R of a group its position in the value buckets of either layout,
  // [buckets][values_per_bucket]. Positions of the second layout that are not named hold zeros.
  void set_pattern(std::int64_t group, std::span<const std::int64_t> from,
                   std::span<const std::int64_t> to);

  // `from` are the values of the first layout, [groups][buckets][values_per_bucket]; values() are
  // those of the second afterwards. False when options.stop said so. The ledger is that of the
  // steps that ran, steps() of them.
  bool run(const std::byte* from, const RunOptions& options, device::Ledger& ledger);
  const std::byte* values() const;
  std::int64_t steps() const;

  // What the table takes of each tile all the time, and takes to send when the pattern changes.
  Bytes table_bytes() const;
  // The most memory any tile needs for this, the values of both layouts included.
  Bytes high_water() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera::runtime::internal
