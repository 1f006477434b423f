#pragma once

#include <cstdint>
#include <span>

#include "tessera/base/movable_state.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/partitioner/tile_grid.hpp"
#include "tessera/runtime/tile_options.hpp"

namespace tessera::runtime::internal {

// The two layouts between which values of R move. `to` is the grid of transpose(R).
struct RehomeSpec {
  partitioner::TileGrid from, to;  // of one group each
  std::int64_t groups = 1;
};

// Moves the values of R from the buckets of one layout to those of another, on the machine:
//   gather   Each tile of the second layout receives the value buckets of every cell of the first
//            layout that its own cell overlaps. One exchange, known with the plan.
//   unpack   Each tile copies the values of its own bucket from them, by a table. One compute step.
//   pass on  Only if a value has spilled and is in no bucket that its tile gathered: all buckets
//            move around the ring of tiles, and each tile picks its own values from the buckets
//            that pass. As many moves as the farthest value needs; each is an exchange, and a
//            compute step if a tile picks a value at this distance.
// The table has a word of 32 bits for each value of a bucket of the second layout and stays on its
// tile. The host makes the tables and the list of moves when the pattern changes.
class RehomePass {
 public:
  // Throws Error{LimitExceeded} if the memory of a tile cannot hold the program, or if a table
  // would need more than 32 bits per word. The executor must outlive the pass.
  RehomePass(const RehomeSpec& spec, const device::Machine& machine, device::ExchangeMode mode,
             Executor& executor);
  ~RehomePass();
  RehomePass(RehomePass&&) noexcept;

  // Takes, for each value of R of a group, its position in the value buckets of either layout,
  // [buckets][values_per_bucket]. Positions of the second layout that are not in `to` hold zeros.
  void set_pattern(std::int64_t group, std::span<const std::int64_t> from,
                   std::span<const std::int64_t> to);

  // Moves the values `from` of the first layout, [groups][buckets][values_per_bucket]. After the
  // call values() has those of the second layout. Returns false if options.stop ended the run.
  // `ledger` is overwritten with the steps that ran, steps() of them in a full run.
  bool run(const std::byte* from, const PassOptions& options, device::Ledger& ledger);
  const std::byte* values() const;

  // Returns the memory that changed during the last run, if it had a self_check and finished.
  const device::Damage& damage() const;
  std::int64_t steps() const;

  // The size of the table of one tile, which stays in the tile's memory and is sent when the
  // pattern changes.
  Bytes table_bytes() const;

  // The most memory that any tile needs for this pass, with the values of both layouts.
  Bytes high_water() const;

  struct State;  // the move without its machine (rehome_state.hpp)

 private:
  struct Own;
  MovableState<Own> own_;
};

}  // namespace tessera::runtime::internal
