#include "tessera/device/internal/seals.hpp"

#include "tessera/device/internal/word_sum.hpp"

namespace tessera::device::internal {
namespace {

std::uint64_t sum_of(const ByteRows& rows) {
  if (rows.rows == 0 || rows.row_bytes == 0) return 0;
  if (rows.gapless()) return sum_of_words(rows.data, rows.bytes());
  std::uint64_t sum = 0;
  for (std::int64_t i = 0; i < rows.rows; ++i)
    sum += sum_of_words(rows.data + i * rows.stride, rows.row_bytes);
  return sum;
}

}  // namespace

void Seals::begin(std::int64_t slots) { seals_.assign(std::size_t(slots), {}); }

void Seals::open(const Slots& slots, SlotId id) {
  if (!is_on()) return;
  Seal& seal = seals_[std::size_t(id.value)];
  if (!seal.is_closed) return;
  seal.is_closed = false;
  if (sum_of(slots[id].contents) != seal.sum) seal.is_broken = true;
}

void Seals::leave_out(const Slots& slots, SlotId id) {
  open(slots, id);
  left_out_.resize(std::size_t(slots.count()));
  left_out_[std::size_t(id.value)] = true;
}

bool Seals::is_left_out(SlotId id) const {
  return id.value < std::ssize(left_out_) && left_out_[std::size_t(id.value)];
}

void Seals::close(const Slots& slots, SlotId id) {
  if (!is_on() || is_left_out(id)) return;
  Seal& seal = seals_[std::size_t(id.value)];
  seal.sum = sum_of(slots[id].contents);
  seal.is_closed = true;
}

// Seals are asked first, because there are many slots and looking at one costs a cache line.
void Seals::open_written(const Slots& slots, TileId tile) {
  if (!is_on()) return;
  for (const SlotId id : slots.of_tile(tile))
    if (seals_[std::size_t(id.value)].is_closed && slots.may_be_written(id)) open(slots, id);
}

void Seals::close_written(const Slots& slots, TileId tile) {
  if (!is_on()) return;
  for (const SlotId id : slots.of_tile(tile))
    if (!is_left_out(id) && slots.may_be_written(id)) close(slots, id);
}

void Seals::open_ended(const Slots& slots, TileId tile) {
  for (const SlotId id : slots.of_tile(tile))
    if (slots[id].spec.last_stage < slots.stage()) open(slots, id);
}

void Seals::open_all(const Slots& slots, TileId tile) {
  for (const SlotId id : slots.of_tile(tile)) open(slots, id);
}

Damage Seals::damage(const Slots& slots) const {
  Damage damage;
  for (std::size_t i = 0; i < seals_.size(); ++i) {
    if (!seals_[i].is_broken) continue;
    const SlotSpec& spec = slots[SlotId(std::int64_t(i))].spec;
    if (damage.slots++ > 0) continue;
    damage.tile = spec.tile;
    damage.slot = spec.name;
  }
  return damage;
}

}  // namespace tessera::device::internal
