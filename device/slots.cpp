#include "tessera/device/internal/slots.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"

namespace tessera::device::internal {
namespace {

constexpr std::byte kUnwritten{0xff};
constexpr std::int64_t kAlignment = 16;  // of slots: 8-byte data paths and 128-bit loads
constexpr std::int64_t kGuardBytes = 16;

std::int64_t room_for(const Slot& slot) {
  return round_up(slot.spec.rows * slot.spec.row_bytes, kAlignment) + kGuardBytes;
}

// The part of a tile's arena that a slot occupies, with its guard.
struct Capacity {
  const SlotSpec* spec;
  std::int64_t offset, bytes;
  std::int64_t end() const { return offset + bytes; }
};

// Inserts `slot` into `placed` at the lowest free offset and returns that offset. `placed` is
// sorted by offset and stays so.
std::int64_t place_first_fit(std::vector<Capacity>& placed, Capacity slot) {
  auto next = placed.begin();
  for (; next != placed.end() && next->offset - slot.offset < slot.bytes; ++next)
    slot.offset = next->end();
  placed.insert(next, slot);
  return slot.offset;
}

ByteRows rows_at(std::byte* data, const SlotSpec& spec) {
  return {data, spec.rows, spec.row_bytes, spec.row_bytes};
}

}  // namespace

SlotId Slots::add(const SlotSpec& spec) {
  if (spec.tile.value < 0 || spec.tile.value >= tiles())
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("slot \"{}\": tile {} does not exist; the machine has tiles 0..{}",
                            spec.name, spec.tile.value, tiles() - 1));
  TESSERA_ASSERT(!sealed_ && spec.rows >= 0 && spec.row_bytes >= 0);
  TESSERA_ASSERT(0 <= spec.first_stage && spec.first_stage <= spec.last_stage);
  TESSERA_ASSERT(spec.placed.data == nullptr ||
                 (spec.kind == SlotKind::Owned && spec.placed.rows == spec.rows &&
                  spec.placed.row_bytes == spec.row_bytes));
  const SlotId id(static_cast<std::int64_t>(slots_.size()));
  const ByteRows empty{nullptr, 0, spec.row_bytes, spec.row_bytes};
  slots_.push_back({spec, empty, empty});
  tiles_[std::size_t(spec.tile.value)].slots.push_back(id);
  return id;
}

// Counts the slots of each stage, because there are few stages and many slots.
void Slots::order_by_first_stage() {
  std::vector<std::size_t> next;  // the place of the next slot of each stage
  for (const Slot& slot : slots_) {
    const auto stage = std::size_t(slot.spec.first_stage);
    if (stage + 2 > next.size()) next.resize(stage + 2);
    ++next[stage + 1];
  }
  std::partial_sum(next.begin(), next.end(), next.begin());
  by_first_stage_.resize(slots_.size());
  for (std::size_t i = 0; i < slots_.size(); ++i)
    by_first_stage_[next[std::size_t(slots_[i].spec.first_stage)]++] = SlotId(std::int64_t(i));
}

void Slots::allocate() {
  TESSERA_ASSERT(!sealed_);
  sealed_ = true;
  order_by_first_stage();
  for (TileMemory& tile : tiles_) {
    std::int64_t bytes = 0;
    for (const SlotId id : tile.slots)
      if (needs_memory((*this)[id])) bytes += room_for((*this)[id]);
    tile.arena.assign(std::size_t(bytes), kUnwritten);
    std::byte* next = tile.arena.data();
    for (const SlotId id : tile.slots) {
      Slot& slot = (*this)[id];
      if (!has_memory(slot)) continue;
      if (!needs_memory(slot)) {
        slot.own = slot.contents = slot.spec.placed;
        continue;
      }
      slot.own = rows_at(next, slot.spec);
      slot.contents = slot.own;
      next += room_for(slot);
    }
  }
}

// Places slots by first fit in the order in which their intervals begin, the longest interval
// first. The longest-lived slots are then at the bottom, and the others leave one gap above them
// when they end. The memory of slots whose interval has ended is free again.
void Slots::lay_out_by_stages(TileMemory& tile) {
  std::vector<SlotId> order = tile.slots;
  std::stable_sort(order.begin(), order.end(), [this](SlotId a, SlotId b) {
    const SlotSpec &one = (*this)[a].spec, &other = (*this)[b].spec;
    return one.first_stage != other.first_stage ? one.first_stage < other.first_stage
                                                : one.last_stage > other.last_stage;
  });
  std::vector<Capacity> placed;
  std::vector<std::int64_t> offsets;
  std::int64_t extent = 0;
  for (const SlotId id : order) {
    const Slot& slot = (*this)[id];
    std::erase_if(placed,
                  [&](const Capacity& r) { return r.spec->last_stage < slot.spec.first_stage; });
    offsets.push_back(place_first_fit(placed, {&slot.spec, 0, room_for(slot)}));
    extent = std::max(extent, offsets.back() + room_for(slot));
  }
  tile.arena = std::vector<std::byte>(std::size_t(extent), kUnwritten);
  for (std::size_t i = 0; i < order.size(); ++i) {
    Slot& slot = (*this)[order[i]];
    slot.own = rows_at(tile.arena.data() + offsets[i], slot.spec);
    slot.contents = slot.own;
  }
}

void Slots::begin_program() {
  stage_ = kNoStage;
  touched_ = false;
  allow({}, {});
}

void Slots::enter_stage(int stage) {
  TESSERA_ASSERT(sealed_ && stage > stage_ && stage >= 0);
  // Data that were loaded before any stage would be lost.
  TESSERA_ASSERT(!touched_);
  if (!staged_ && mode_ == ExchangeMode::Isolate)
    for (TileMemory& tile : tiles_) lay_out_by_stages(tile);
  staged_ = true;
  previous_stage_ = std::exchange(stage_, stage);
}

std::span<const SlotId> Slots::starting() const {
  const auto begins_before = [this](SlotId id, int stage) {
    return (*this)[id].spec.first_stage < stage;
  };
  const auto begin = by_first_stage_.begin(), end = by_first_stage_.end();
  return {std::lower_bound(begin, end, previous_stage_ + 1, begins_before),
          std::lower_bound(begin, end, stage_ + 1, begins_before)};
}

void Slots::start_slot(SlotId id) {
  Slot& slot = (*this)[id];
  if (!alive(slot)) return;
  if (mode_ == ExchangeMode::Isolate) std::fill_n(slot.own.data, room_for(slot), kUnwritten);
  slot.contents = slot.own;
}

std::optional<Struck> Slots::flip(TileId tile, std::int64_t bit) {
  std::int64_t byte = bit / 8;
  for (const SlotId id : of_tile(tile)) {
    const Slot& slot = (*this)[id];
    if (!alive(slot) || !has_memory(slot)) continue;
    if (byte < slot.own.bytes()) {
      slot.own.data[byte] ^= std::byte(1 << bit % 8);
      return Struck{slot.spec.name, byte};
    }
    byte -= slot.own.bytes();
  }
  return std::nullopt;
}

void Slots::note_step() {
  TESSERA_ASSERT(sealed_);
  touched_ = touched_ || stage_ == kNoStage;
}

void Slots::throw_not_alive(const Slot& slot) const {
  const SlotSpec& spec = slot.spec;
  const std::string now =
      stage_ == kNoStage ? "before the program began a stage" : fmt::format("in stage {}", stage_);
  throw Error(ErrorCode::Internal,
              fmt::format("tile {}: slot \"{}\" was touched {} but lives in stages {}..{}",
                          spec.tile.value, spec.name, now, spec.first_stage, spec.last_stage));
}

void Slots::throw_not_allowed(const Slot& slot, Access wanted) const {
  const char* what = wanted == Access::Read    ? "read"
                     : wanted == Access::Write ? "written"
                                               : "touched";
  throw Error(ErrorCode::Internal,
              fmt::format("tile {}: slot \"{}\" was {} in step \"{}\", which does not say so",
                          slot.spec.tile.value, slot.spec.name, what, step_));
}

void Slots::check_guards(TileId tile) const {
  if (tiles_[std::size_t(tile.value)].arena.empty()) return;  // no slot has memory of its own
  for (const SlotId id : of_tile(tile)) {
    const Slot& slot = (*this)[id];
    if (!needs_memory(slot) || !alive(slot)) continue;
    const std::byte* behind = slot.own.data + slot.own.bytes();
    const std::byte* end = slot.own.data + room_for(slot);
    if (!std::all_of(behind, end, [](std::byte b) { return b == kUnwritten; }))
      throw Error(ErrorCode::Internal,
                  fmt::format("tile {}: a vertex wrote behind the {} bytes of slot \"{}\"",
                              tile.value, slot.own.bytes(), slot.spec.name));
  }
}

}  // namespace tessera::device::internal
