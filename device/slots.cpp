#include "tessera/device/internal/slots.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"

namespace tessera::device::internal {
namespace {

constexpr std::byte kUnwritten{0xff};
constexpr std::int64_t kAlignment = 16;  // of slots: 8-byte paths, with room for 128-bit loads
constexpr std::int64_t kGuardBytes = 16;

std::int64_t room_for(const Slot& slot) {
  return round_up(slot.spec.rows * slot.spec.row_bytes, kAlignment) + kGuardBytes;
}

}  // namespace

SlotId Slots::add(const SlotSpec& spec) {
  if (spec.tile.value < 0 || spec.tile.value >= tiles())
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("slot \"{}\": tile {} does not exist; the machine has tiles 0..{}",
                            spec.name, spec.tile.value, tiles() - 1));
  TESSERA_ASSERT(spec.rows >= 0 && spec.row_bytes >= 0 && spec.first_phase <= spec.last_phase);
  const SlotId id(static_cast<std::int64_t>(slots_.size()));
  const ByteRows empty{nullptr, 0, spec.row_bytes, spec.row_bytes};
  slots_.push_back({spec, empty, empty});
  tiles_[std::size_t(spec.tile.value)].slots.push_back(id);
  return id;
}

void Slots::allocate() {
  for (TileMemory& tile : tiles_) {
    std::int64_t bytes = 0;
    for (const SlotId id : tile.slots)
      if (has_memory((*this)[id])) bytes += room_for((*this)[id]);
    tile.arena.assign(std::size_t(bytes), kUnwritten);
    std::byte* next = tile.arena.data();
    for (const SlotId id : tile.slots) {
      Slot& slot = (*this)[id];
      if (!has_memory(slot)) continue;
      slot.own = {next, slot.spec.rows, slot.spec.row_bytes, slot.spec.row_bytes};
      slot.contents = slot.own;
      next += room_for(slot);
    }
  }
}

void Slots::check_guards(TileId tile) const {
  for (const SlotId id : of_tile(tile)) {
    const Slot& slot = (*this)[id];
    if (!has_memory(slot)) continue;
    const std::byte* behind = slot.own.data + slot.own.bytes();
    const std::byte* end = slot.own.data + room_for(slot);
    if (!std::all_of(behind, end, [](std::byte b) { return b == kUnwritten; }))
      throw Error(ErrorCode::Internal,
                  fmt::format("tile {}: a vertex wrote behind the {} bytes of slot \"{}\"",
                              tile.value, slot.own.bytes(), slot.spec.name));
  }
}

}  // namespace tessera::device::internal
