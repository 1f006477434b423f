#pragma once

#include <vector>

#include "tessera/device/engine.hpp"

namespace tessera::device::internal {

struct Slot {
  SlotSpec spec;
  ByteRows own;       // its own memory; data is null for a landing slot in Share mode
  ByteRows contents;  // where its contents are now: own memory or, in Share mode, any view
};

// All slots of a machine and their memory. Memory is filled with ones, so that a float read before
// it is written is not a number in both modes. Behind each slot lies a guard that vertices must not
// touch.
class Slots {
 public:
  Slots(std::int64_t tiles, ExchangeMode mode) : mode_(mode), tiles_(std::size_t(tiles)) {}

  SlotId add(const SlotSpec& spec);
  // Gives memory to those that have their own.
  void allocate();
  Slot& operator[](SlotId id) { return slots_[std::size_t(id.value)]; }
  const Slot& operator[](SlotId id) const { return slots_[std::size_t(id.value)]; }
  const std::vector<SlotId>& of_tile(TileId tile) const {
    return tiles_[std::size_t(tile.value)].slots;
  }
  std::int64_t tiles() const { return static_cast<std::int64_t>(tiles_.size()); }
  bool has_memory(const Slot& slot) const {
    return slot.spec.kind == SlotKind::Owned || mode_ == ExchangeMode::Isolate;
  }
  // Error{Internal} naming tile and slot when something was written behind a slot of this tile.
  void check_guards(TileId tile) const;

 private:
  struct TileMemory {
    std::vector<SlotId> slots;
    std::vector<std::byte> arena;
  };
  ExchangeMode mode_;
  std::vector<Slot> slots_;
  std::vector<TileMemory> tiles_;
};

}  // namespace tessera::device::internal
