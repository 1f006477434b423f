#pragma once

#include <optional>
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
// Invariants:
//   1. Slots that live in the same phase never overlap. Until a phase has begun, no two slots do.
//   2. phase_ is kNoPhase or the phase that runs; phased_ is true once any phase has begun.
//   3. touched_ is true when a load or step of this program ran in no phase.
// start_slot, in_use and check_guards may run on many threads, for different slots and tiles; the
// rest may not.
class Slots {
 public:
  Slots(std::int64_t tiles, ExchangeMode mode) : mode_(mode), tiles_(std::size_t(tiles)) {}

  SlotId add(const SlotSpec& spec);
  // Gives memory to those that have their own, side by side. No slot can be added any more.
  void allocate();

  void begin_program();
  // What Engine::begin_phase asks for, together with start_slot on each of starting(). The first
  // call lays slots out anew in Isolate mode.
  void enter_phase(int phase);
  // Flips a bit of what the living slots of a tile hold, as Fault counts it. None where they hold
  // less.
  std::optional<Struck> flip(TileId tile, std::int64_t bit);
  // The slots that live in phase_ but lived in no earlier phase that ran are among these; each is
  // handed to start_slot.
  std::span<const SlotId> starting() const;
  void start_slot(SlotId id);
  // What Engine::allow asks for.
  void allow(std::string_view step, std::span<const Access> buffers) {
    step_ = step;
    allowed_ = buffers;
  }
  // Before every load and step.
  void note_step();

  Slot& operator[](SlotId id) { return slots_[std::size_t(id.value)]; }
  const Slot& operator[](SlotId id) const { return slots_[std::size_t(id.value)]; }
  // The same for one who touches its contents: Error{Internal} outside the slot's phases, and where
  // the step that runs has no such access.
  Slot& in_use(SlotId id, Access wanted) {
    check_touch((*this)[id], wanted);
    return (*this)[id];
  }
  const Slot& in_use(SlotId id, Access wanted) const {
    check_touch((*this)[id], wanted);
    return (*this)[id];
  }
  const std::vector<SlotId>& of_tile(TileId tile) const {
    return tiles_[std::size_t(tile.value)].slots;
  }
  // The phase that runs; -1 before the first.
  int phase() const { return phase_; }
  std::int64_t tiles() const { return static_cast<std::int64_t>(tiles_.size()); }
  bool has_memory(const Slot& slot) const {
    return slot.spec.kind == SlotKind::Owned || mode_ == ExchangeMode::Isolate;
  }
  // Error{Internal} naming tile and slot when something was written behind a living slot of this
  // tile.
  void check_guards(TileId tile) const;

 private:
  struct TileMemory {
    std::vector<SlotId> slots;
    std::vector<std::byte> arena;
  };
  static constexpr int kNoPhase = -1;

  bool alive(const Slot& slot) const {
    if (phase_ == kNoPhase) return !phased_;
    return slot.spec.first_phase <= phase_ && phase_ <= slot.spec.last_phase;
  }
  // Any of the accesses that `wanted` names will do.
  bool allowed(const Slot& slot, Access wanted) const {
    if (allowed_.empty() || slot.spec.buffer < 0) return true;
    const Access has = allowed_[std::size_t(slot.spec.buffer)];
    return (static_cast<int>(has) & static_cast<int>(wanted)) != 0;
  }
  void check_touch(const Slot& slot, Access wanted) const {
    if (!alive(slot)) throw_not_alive(slot);
    if (!allowed(slot, wanted)) throw_not_allowed(slot, wanted);
  }
  [[noreturn]] void throw_not_alive(const Slot& slot) const;
  [[noreturn]] void throw_not_allowed(const Slot& slot, Access wanted) const;
  void lay_out_by_phases(TileMemory& tile);

  ExchangeMode mode_;
  bool sealed_ = false, phased_ = false, touched_ = false;
  int phase_ = kNoPhase, previous_phase_ = kNoPhase;
  std::vector<Slot> slots_;
  std::vector<SlotId> by_first_phase_;
  std::vector<TileMemory> tiles_;
  std::string_view step_;
  std::span<const Access> allowed_;  // by buffer; empty: all
};

}  // namespace tessera::device::internal
