#pragma once

#include <cstdint>
#include <vector>

#include "tessera/device/engine.hpp"
#include "tessera/device/internal/slots.hpp"

namespace tessera::device::internal {

// The sums over the contents of slots by which a program notices memory that changed between two
// steps. A slot is sealed when a step has written it. Its contents are compared with the seal when
// they are about to be overwritten, when its memory is about to be given to another slot, and at
// the end of the program. A changed bit stays changed until then, so no read needs a comparison.
//
// The sum is that of all words of 64 bits, modulo 2^64. One changed bit always changes it. Two
// changed bits leave it as it was only if they have the same position in their words and change in
// opposite directions.
//
// open, close and the functions for one tile may run on many threads, for different slots and
// tiles; no other function may.
class Seals {
 public:
  // Forgets all seals and watches this number of slots. If it is 0, all other functions do nothing.
  void begin(std::int64_t slots);
  bool is_on() const { return !seals_.empty(); }

  // Never seals this slot, in any program.
  void leave_out(const Slots& slots, SlotId id);

  // Must be called before the contents of a slot change, and after they have changed.
  void open(const Slots& slots, SlotId id);
  void close(const Slots& slots, SlotId id);

  // Open and close the slots of a tile that the current step may write.
  void open_written(const Slots& slots, TileId tile);
  void close_written(const Slots& slots, TileId tile);

  // Opens the slots of a tile whose interval has ended, or all of them.
  void open_ended(const Slots& slots, TileId tile);
  void open_all(const Slots& slots, TileId tile);

  // Returns the slots whose contents had changed when they were opened. O(slots).
  Damage damage(const Slots& slots) const;

 private:
  struct Seal {
    std::uint64_t sum = 0;
    bool is_closed = false, is_broken = false;
  };
  bool is_left_out(SlotId id) const;

  std::vector<Seal> seals_;     // by slot; empty: no program is watched
  std::vector<bool> left_out_;  // by slot; slots beyond the end are not
};

}  // namespace tessera::device::internal
