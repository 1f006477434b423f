#include "tessera/device/internal/seals.hpp"

#include <array>
#include <cstring>
#include <numeric>

namespace tessera::device::internal {
namespace {

// A cache line at a time, with a sum for each of its words: additions of one line do not wait for
// each other, and compilers add several words in one instruction.
constexpr std::int64_t kLineBytes = 64;
constexpr std::size_t kLineWords = kLineBytes / sizeof(std::uint64_t);

// Returns the sum of the words of a run of bytes. Missing bytes of the last line count as zeros.
std::uint64_t sum_of_run(const std::byte* data, std::int64_t bytes) {
  std::array<std::uint64_t, kLineWords> sums{};
  const auto add_line = [&sums](const std::byte* line) {
    for (std::size_t w = 0; w < kLineWords; ++w) {
      std::uint64_t word = 0;
      std::memcpy(&word, line + w * sizeof(word), sizeof(word));
      sums[w] += word;
    }
  };
  for (; bytes >= kLineBytes; bytes -= kLineBytes, data += kLineBytes) add_line(data);
  if (bytes > 0) {
    std::array<std::byte, kLineBytes> rest{};
    std::memcpy(rest.data(), data, std::size_t(bytes));
    add_line(rest.data());
  }
  return std::accumulate(sums.begin(), sums.end(), std::uint64_t{0});
}

std::uint64_t sum_of(const ByteRows& rows) {
  if (rows.rows == 0 || rows.row_bytes == 0) return 0;
  if (rows.gapless()) return sum_of_run(rows.data, rows.bytes());
  std::uint64_t sum = 0;
  for (std::int64_t i = 0; i < rows.rows; ++i)
    sum += sum_of_run(rows.data + i * rows.stride, rows.row_bytes);
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

void Seals::close(const Slots& slots, SlotId id) {
  if (!is_on()) return;
  Seal& seal = seals_[std::size_t(id.value)];
  seal.sum = sum_of(slots[id].contents);
  seal.is_closed = true;
}

void Seals::open_written(const Slots& slots, TileId tile) {
  if (!is_on()) return;
  for (const SlotId id : slots.of_tile(tile))
    if (slots.may_be_written(id)) open(slots, id);
}

void Seals::close_written(const Slots& slots, TileId tile) {
  if (!is_on()) return;
  for (const SlotId id : slots.of_tile(tile))
    if (slots.may_be_written(id)) close(slots, id);
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
