#include "tessera/device/internal/exchange.hpp"

#include <algorithm>
#include <cstring>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"

namespace tessera::device::internal {
namespace {

std::int64_t bytes_of(const Piece& piece, const Slots& slots) {
  return piece.rows.size() * slots[piece.slot].spec.row_bytes;
}

// Bytes each tile sends and receives in one step.
struct Traffic {
  std::vector<std::int64_t> received;         // alone on its bus
  std::vector<std::int64_t> received_shared;  // while every tile of its bus takes the same
  std::vector<std::int64_t> sent;
  std::vector<std::int64_t> unseen_senders;                  // of gathers that say so themselves
  std::vector<std::pair<std::int32_t, std::int32_t>> links;  // receiver, sender; with repetitions

  explicit Traffic(std::int64_t tiles)
      : received(std::size_t(tiles)),
        received_shared(received),
        sent(received),
        unseen_senders(received) {}

  // How many tiles each tile receives from.
  std::vector<std::int64_t> senders() {
    std::vector<std::int64_t> result = unseen_senders;
    std::sort(links.begin(), links.end());
    links.erase(std::unique(links.begin(), links.end()), links.end());
    for (const auto& link : links) ++result[std::size_t(link.first)];
    return result;
  }
};

// Tiles share their bus for what all of them take. A piece that one of them has already is not
// taken by that one, so it reaches the others at single width.
void add_traffic(const Gather& gather, const Slots& slots, const Machine& machine,
                 Traffic& traffic) {
  std::vector<std::int32_t> takers;
  for (const SlotId id : gather.destinations) takers.push_back(slots[id].spec.tile.value);
  std::sort(takers.begin(), takers.end());
  TESSERA_ASSERT(std::adjacent_find(takers.begin(), takers.end()) == takers.end());
  const std::int64_t bus = machine.tiles_per_exchange_bus;
  for (const std::int32_t tile : takers) {
    const auto first = std::lower_bound(takers.begin(), takers.end(), tile / bus * bus);
    const auto last = std::lower_bound(takers.begin(), takers.end(), (tile / bus + 1) * bus);
    const bool all_take = bus > 1 && last - first == bus;
    traffic.unseen_senders[std::size_t(tile)] += gather.senders;
    for (const Piece& piece : gather.pieces) {
      const std::int32_t from = slots[piece.slot].spec.tile.value;
      if (from == tile && gather.senders == 0) continue;
      const bool shared = all_take && (gather.senders > 0 || from / bus != tile / bus);
      const std::int64_t bytes = bytes_of(piece, slots);
      (shared ? traffic.received_shared : traffic.received)[std::size_t(tile)] += bytes;
      if (gather.senders == 0 && bytes > 0) traffic.links.emplace_back(tile, from);
    }
  }
  if (gather.senders > 0) return;  // each sends too little to matter
  for (const Piece& piece : gather.pieces) {
    const std::int32_t from = slots[piece.slot].spec.tile.value;
    const bool leaves = takers.size() > 1 || (!takers.empty() && takers.front() != from);
    if (leaves) traffic.sent[std::size_t(from)] += bytes_of(piece, slots);
  }
}

void check_gathers(const std::vector<Gather>& gathers, const Slots& slots) {
  std::vector<SlotId> sources, destinations;
  for (const Gather& gather : gathers) {
    std::int64_t rows = 0;
    for (const Piece& piece : gather.pieces) {
      rows += piece.rows.size();
      sources.push_back(piece.slot);
    }
    for (const SlotId id : gather.destinations) {
      TESSERA_ASSERT(rows <= slots[id].spec.rows);
      for (const Piece& piece : gather.pieces)
        TESSERA_ASSERT(slots[piece.slot].spec.row_bytes == slots[id].spec.row_bytes);
      destinations.push_back(id);
    }
  }
  std::sort(sources.begin(), sources.end());
  std::sort(destinations.begin(), destinations.end());
  TESSERA_ASSERT(std::adjacent_find(destinations.begin(), destinations.end()) ==
                 destinations.end());
  for (const SlotId id : destinations)
    TESSERA_ASSERT(!std::binary_search(sources.begin(), sources.end(), id));
}

}  // namespace

void copy_rows(const ByteRows& from, std::byte* to) {
  if (from.rows == 0 || from.row_bytes == 0) return;
  if (from.gapless()) {
    std::memcpy(to, from.data, std::size_t(from.bytes()));
    return;
  }
  for (std::int64_t i = 0; i < from.rows; ++i)
    std::memcpy(to + i * from.row_bytes, from.data + i * from.stride, std::size_t(from.row_bytes));
}

namespace {

ByteRows part(const Piece& piece, const Slots& slots) {
  const ByteRows& contents = slots.in_use(piece.slot).contents;
  TESSERA_ASSERT(piece.rows.end <= contents.rows);
  return contents.sub(piece.rows);
}

}  // namespace

Exchange prepare_exchange(std::vector<Gather> gathers, const Slots& slots, const Machine& machine) {
  check_gathers(gathers, slots);
  Traffic traffic(slots.tiles());
  for (const Gather& gather : gathers) add_traffic(gather, slots, machine, traffic);
  Exchange result;
  result.gathers = std::move(gathers);
  const std::int64_t width = machine.exchange_bytes_per_cycle;
  const std::vector<std::int64_t> senders = traffic.senders();
  for (std::int64_t tile = 0; tile < slots.tiles(); ++tile) {
    const auto i = std::size_t(tile);
    const std::int64_t in =
        senders[i] * machine.receive_start.value + ceil_div(traffic.received[i], width) +
        ceil_div(traffic.received_shared[i], width * machine.tiles_per_exchange_bus);
    const Cycles cycles(std::max(in, ceil_div(traffic.sent[i], width)));
    if (cycles > result.cycles) result.critical_tile = TileId(tile);
    result.cycles = std::max(result.cycles, cycles);
    result.tile_sum += cycles;
    result.moved += Bytes(traffic.received[i] + traffic.received_shared[i]);
  }
  return result;
}

void copy_gather(const Gather& gather, Slots& slots) {
  for (const SlotId id : gather.destinations) {
    Slot& slot = slots.in_use(id);
    std::int64_t rows = 0;
    for (const Piece& piece : gather.pieces) {
      copy_rows(part(piece, slots), slot.own.data + rows * slot.own.stride);
      rows += piece.rows.size();
    }
    slot.contents = slot.own;
    slot.contents.rows = rows;
  }
}

void share_gather(const Gather& gather, Slots& slots) {
  ByteRows whole;
  for (const Piece& piece : gather.pieces) {
    const ByteRows next = part(piece, slots);
    if (next.rows == 0) continue;
    if (whole.rows == 0) {
      whole = next;
      continue;
    }
    TESSERA_ASSERT(next.data == whole.data + whole.rows * whole.stride &&
                   next.stride == whole.stride);
    whole.rows += next.rows;
  }
  for (const SlotId id : gather.destinations) {
    Slot& slot = slots.in_use(id);
    if (!slots.has_memory(slot)) {
      slot.contents = whole;
      slot.contents.row_bytes = slot.spec.row_bytes;
      continue;
    }
    if (slot.own.data != whole.data) copy_rows(whole, slot.own.data);
    slot.contents = slot.own;
    slot.contents.rows = whole.rows;
  }
}

}  // namespace tessera::device::internal
