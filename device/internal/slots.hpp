#pragma once

#include <optional>
#include <vector>

#include "tessera/device/engine.hpp"

namespace tessera::device::internal {

// A slot with its memory.
struct Slot {
  SlotSpec spec;
  ByteRows own;       // its own memory; `data` is null for a landing slot in Share mode
  ByteRows contents;  // its current contents: `own` or, in Share mode, a view
};

// All slots of a machine and their memory. New memory has all bits set, so a float that is read
// before it is written is not a number. After each slot follows a guard that vertices must not
// touch. A slot is alive if the current stage is in its interval, first_stage to last_stage.
//
// Invariants:
//   1. Slots that are alive in the same stage never overlap. Until a stage has begun, no two slots
//      overlap.
//   2. stage_ is kNoStage or the current stage; staged_ is true once any stage has begun.
//   3. touched_ is true if a load or step of this program ran before any stage.
//
// start_slot, in_use and check_guards may run on many threads, for different slots and tiles; no
// other function may.
class Slots {
 public:
  Slots(std::int64_t tiles, ExchangeMode mode) : mode_(mode), tiles_(std::size_t(tiles)) {}

  SlotId add(const SlotSpec& spec);

  // Allocates the memory of all slots that have their own, one after the other. No slot can be
  // added afterwards.
  void allocate();

  void begin_program();

  // Implements Engine::begin_stage, together with start_slot on each of starting(). In Isolate mode
  // the first call gives every slot a new place.
  void enter_stage(int stage);

  // Flips a bit of the memory of a tile's slots that are alive, counted as in Fault. Returns no
  // value if they hold fewer bits.
  std::optional<Struck> flip(TileId tile, std::int64_t bit);

  // Returns the slots whose interval began after the previous stage and no later than this one.
  // The caller passes each of them to start_slot, which ignores those that are not alive.
  std::span<const SlotId> starting() const;
  void start_slot(SlotId id);

  // Implements Engine::allow.
  void allow(std::string_view step, std::span<const Access> buffers) {
    step_ = step;
    allowed_ = buffers;
  }

  // Must be called before every load and step.
  void note_step();

  Slot& operator[](SlotId id) { return slots_[std::size_t(id.value)]; }
  const Slot& operator[](SlotId id) const { return slots_[std::size_t(id.value)]; }

  // Returns a slot whose contents are about to be accessed. Throws Error{Internal} outside the
  // slot's interval, and if the current step has not declared the access. ReadWrite asks for either
  // of the two.
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

  // Returns the current stage; -1 before the first.
  int stage() const { return stage_; }
  std::int64_t tiles() const { return static_cast<std::int64_t>(tiles_.size()); }
  std::int64_t count() const { return static_cast<std::int64_t>(slots_.size()); }
  bool has_memory(const Slot& slot) const {
    return slot.spec.kind == SlotKind::Owned || mode_ == ExchangeMode::Isolate;
  }

  // Returns true if the engine allocates the memory of this slot.
  bool needs_memory(const Slot& slot) const {
    return has_memory(slot) && (mode_ == ExchangeMode::Isolate || slot.spec.placed.data == nullptr);
  }

  // Returns true if vertices of the current step may write to the memory of this slot.
  bool may_be_written(SlotId id) const {
    const Slot& slot = (*this)[id];
    return alive(slot) && has_memory(slot) && allowed(slot, Access::Write);
  }

  // Throws Error{Internal}, which names tile and slot, if the guard after a slot of this tile that
  // is alive was overwritten.
  void check_guards(TileId tile) const;

 private:
  struct TileMemory {
    std::vector<SlotId> slots;
    std::vector<std::byte> arena;
  };
  static constexpr int kNoStage = -1;

  bool alive(const Slot& slot) const {
    if (stage_ == kNoStage) return !staged_;
    return slot.spec.first_stage <= stage_ && stage_ <= slot.spec.last_stage;
  }
  // Returns true if the step has declared at least one of the accesses in `wanted`.
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
  void order_by_first_stage();
  void lay_out_by_stages(TileMemory& tile);

  ExchangeMode mode_;
  bool sealed_ = false, staged_ = false, touched_ = false;
  int stage_ = kNoStage, previous_stage_ = kNoStage;
  std::vector<Slot> slots_;
  std::vector<SlotId> by_first_stage_;
  std::vector<TileMemory> tiles_;
  std::string_view step_;
  std::span<const Access> allowed_;  // [buffers]; empty: every access is allowed
};

}  // namespace tessera::device::internal
