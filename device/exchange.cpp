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

// Data that all tiles of a bus take arrive at the multiple of the width. If one of the tiles
// already holds a piece, it does not take that piece, so the others receive it at single width.
void add_traffic(const Gather& gather, const Slots& slots, const Machine& machine,
                 ExchangeScratch& scratch) {
  Traffic& traffic = scratch.traffic;
  std::vector<std::int32_t>& takers = scratch.takers;
  takers.clear();
  for (const SlotId id : gather.destinations) takers.push_back(slots[id].spec.tile.value);
  std::sort(takers.begin(), takers.end());
  TESSERA_ASSERT(std::adjacent_find(takers.begin(), takers.end()) == takers.end());
  const std::int64_t bus = machine.tiles_per_exchange_bus;
  for (const std::int32_t tile : takers) {
    const auto first = std::lower_bound(takers.begin(), takers.end(), tile / bus * bus);
    const auto last = std::lower_bound(takers.begin(), takers.end(), (tile / bus + 1) * bus);
    const bool all_take = bus > 1 && last - first == bus;
    traffic.senders[std::size_t(tile)] += gather.senders;
    for (const Piece& piece : gather.pieces) {
      const std::int32_t from = slots[piece.slot].spec.tile.value;
      if (from == tile && gather.senders == 0) continue;
      const bool shared = all_take && (gather.senders > 0 || from / bus != tile / bus);
      const std::int64_t bytes = bytes_of(piece, slots);
      (shared ? traffic.received_shared : traffic.received)[std::size_t(tile)] += bytes;
      if (gather.senders == 0 && bytes > 0) traffic.links.emplace_back(tile, from);
    }
  }
  if (gather.senders > 0) return;  // each sender sends too little to matter
  for (const Piece& piece : gather.pieces) {
    const std::int32_t from = slots[piece.slot].spec.tile.value;
    const bool leaves = takers.size() > 1 || (!takers.empty() && takers.front() != from);
    if (leaves) traffic.sent[std::size_t(from)] += bytes_of(piece, slots);
  }
}

// Adds the moves of one run. All tiles of a bus that take it receive it together, unless one of
// them sends it.
void add_run_traffic(std::span<const TakenRun> takers, const Slots& slots, const Machine& machine,
                     Traffic& traffic) {
  const std::int64_t bytes = takers.front().bytes, bus = machine.tiles_per_exchange_bus;
  const std::int32_t from = slots[takers.front().from].spec.tile.value;
  bool leaves = false;
  for (std::size_t i = 0; i < takers.size();) {
    const std::int64_t on_bus = takers[i].taker / bus;
    std::size_t end = i;
    std::int64_t tiles = 0;
    for (; end < takers.size() && takers[end].taker / bus == on_bus; ++end)
      tiles += end == i || takers[end].taker != takers[end - 1].taker;
    const bool shared = bus > 1 && tiles == bus && from / bus != on_bus;
    for (; i < end; ++i) {
      const std::int32_t tile = takers[i].taker;
      if (tile == from) continue;
      (shared ? traffic.received_shared : traffic.received)[std::size_t(tile)] += bytes;
      traffic.links.emplace_back(tile, from);
      leaves = true;
    }
  }
  if (leaves) traffic.sent[std::size_t(from)] += bytes;
}

// Moves of the same run of bytes are one multicast.
void add_traffic(const std::vector<Move>& moves, const Slots& slots, const Machine& machine,
                 ExchangeScratch& scratch) {
  std::vector<TakenRun>& runs = scratch.runs;
  runs.clear();
  for (const Move& move : moves)
    runs.push_back({move.from, move.from_byte, move.bytes, slots[move.to].spec.tile.value});
  std::sort(runs.begin(), runs.end());
  for (std::size_t begin = 0, end = 0; begin < runs.size(); begin = end) {
    while (end < runs.size() && runs[end].is_same_run(runs[begin])) ++end;
    add_run_traffic(std::span(runs).subspan(begin, end - begin), slots, machine, scratch.traffic);
  }
}

// Throws unless the slot has the run of bytes, in one row if its rows may be apart in memory.
void check_run(const Slots& slots, SlotId id, std::int64_t begin, std::int64_t bytes) {
  const SlotSpec& spec = slots[id].spec;
  TESSERA_ASSERT(bytes > 0 && begin >= 0 && begin + bytes <= spec.rows * spec.row_bytes);
  const bool may_be_apart = spec.placed.data != nullptr || !slots.has_memory(slots[id]);
  TESSERA_ASSERT(!may_be_apart || begin / spec.row_bytes == (begin + bytes - 1) / spec.row_bytes);
}

// Checks the moves, notes where those to each slot begin, and adds their slots to the scratch.
void check_moves(Exchange& exchange, const Slots& slots, ExchangeScratch& scratch) {
  const std::vector<Move>& moves = exchange.moves;
  exchange.first_moves.clear();
  for (std::size_t i = 0; i < moves.size(); ++i) {
    const Move& move = moves[i];
    check_run(slots, move.from, move.from_byte, move.bytes);
    check_run(slots, move.to, move.to_byte, move.bytes);
    TESSERA_ASSERT(slots.has_memory(slots[move.to]));
    scratch.sources.push_back(move.from);
    if (i > 0 && moves[i - 1].to == move.to) continue;
    exchange.first_moves.push_back(i);
    scratch.destinations.push_back(move.to);
  }
}

// Throws unless every slot is a destination once at most and no source then.
void check_slots(ExchangeScratch& scratch) {
  std::vector<SlotId>&sources = scratch.sources, &destinations = scratch.destinations;
  std::sort(sources.begin(), sources.end());
  std::sort(destinations.begin(), destinations.end());
  TESSERA_ASSERT(std::adjacent_find(destinations.begin(), destinations.end()) ==
                 destinations.end());
  for (const SlotId id : destinations)
    TESSERA_ASSERT(!std::binary_search(sources.begin(), sources.end(), id));
}

void check_gathers(std::span<const Gather> gathers, const Slots& slots, ExchangeScratch& scratch) {
  std::vector<SlotId>&sources = scratch.sources, &destinations = scratch.destinations;
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
}

}  // namespace

void copy_rows(const ByteRows& from, const ByteRows& to) {
  if (from.rows == 0 || from.row_bytes == 0) return;
  if (from.gapless() && to.gapless()) {
    std::memcpy(to.data, from.data, std::size_t(from.bytes()));
    return;
  }
  for (std::int64_t i = 0; i < from.rows; ++i)
    std::memcpy(to.data + i * to.stride, from.data + i * from.stride, std::size_t(from.row_bytes));
}

namespace {

ByteRows part(const Piece& piece, const Slots& slots) {
  const ByteRows& contents = slots.in_use(piece.slot, Access::Read).contents;
  TESSERA_ASSERT(piece.rows.end <= contents.rows);
  return contents.sub(piece.rows);
}

}  // namespace

void Traffic::clear(std::int64_t tiles) {
  for (auto* figures : {&received, &received_shared, &sent, &senders})
    figures->assign(std::size_t(tiles), 0);
  links.clear();
}

void Traffic::merge_links() {
  std::sort(links.begin(), links.end());
  links.erase(std::unique(links.begin(), links.end()), links.end());
}

void Traffic::count_senders() {
  merge_links();
  for (const auto& link : links) ++senders[std::size_t(link.first)];
}

Cycles Traffic::cycles(std::int64_t tile, const Machine& machine) const {
  const std::int64_t width = machine.exchange_bytes_per_cycle;
  const auto i = std::size_t(tile);
  const std::int64_t in = senders[i] * machine.receive_start.value + ceil_div(received[i], width) +
                          ceil_div(received_shared[i], width * machine.tiles_per_exchange_bus);
  return Cycles(std::max(in, ceil_div(sent[i], width)));
}

namespace {

// Sets the cost of an exchange whose traffic is known but for its senders.
void charge(Exchange& result, Traffic& traffic, const Machine& machine, std::int64_t tiles) {
  traffic.count_senders();
  result.cycles = result.tile_sum = Cycles();
  result.moved = Bytes();
  result.critical_tile = TileId();
  result.tiles = 0;
  for (std::int64_t tile = 0; tile < tiles; ++tile) {
    const auto i = std::size_t(tile);
    const Cycles cycles = traffic.cycles(tile, machine);
    result.tiles += cycles > Cycles();
    if (cycles > result.cycles) result.critical_tile = TileId(tile);
    result.cycles = std::max(result.cycles, cycles);
    result.tile_sum += cycles;
    result.moved += Bytes(traffic.received[i] + traffic.received_shared[i]);
  }
}

}  // namespace

std::vector<TileFigures> Traffic::figures(const Machine& machine) const {
  std::vector<TileFigures> result;
  for (std::int64_t tile = 0; tile < std::ssize(sent); ++tile)
    result.push_back({cycles(tile, machine), Bytes(sent[std::size_t(tile)]), bytes_received(tile)});
  return result;
}

void prepare_exchange(Exchange& result, const Slots& slots, const Machine& machine,
                      ExchangeScratch& scratch) {
  scratch.sources.clear();
  scratch.destinations.clear();
  check_gathers(result.gathers, slots, scratch);
  check_moves(result, slots, scratch);
  check_slots(scratch);
  Traffic& traffic = scratch.traffic;
  traffic.clear(slots.tiles());
  for (const Gather& gather : result.gathers) add_traffic(gather, slots, machine, scratch);
  add_traffic(result.moves, slots, machine, scratch);
  charge(result, traffic, machine, slots.tiles());
}

void charge_gathers(std::span<const Gather> gathers, Exchange& exchange, const Slots& slots,
                    const Machine& machine, ExchangeScratch& scratch) {
  scratch.sources.clear();
  scratch.destinations.clear();
  check_gathers(gathers, slots, scratch);
  scratch.traffic.clear(slots.tiles());
  for (const Gather& gather : gathers) add_traffic(gather, slots, machine, scratch);
  charge(exchange, scratch.traffic, machine, slots.tiles());
  exchange.figures = scratch.traffic.figures(machine);
}

void charge_moves(
    const std::function<void(const std::function<void(const Move&)>& visit)>& for_each_move,
    Exchange& exchange, const Slots& slots, const Machine& machine, ExchangeScratch& scratch) {
  Traffic& traffic = scratch.traffic;
  traffic.clear(slots.tiles());
  std::size_t most_links = 1 << 16;  // repetitions are removed whenever there are so many
  for_each_move([&](const Move& move) {
    check_run(slots, move.from, move.from_byte, move.bytes);
    const SlotSpec& to = slots[move.to].spec;
    TESSERA_ASSERT(move.to_byte >= 0 && move.to_byte + move.bytes <= to.rows * to.row_bytes);
    const TakenRun run{move.from, move.from_byte, move.bytes, slots[move.to].spec.tile.value};
    add_run_traffic({&run, 1}, slots, machine, traffic);
    if (traffic.links.size() < most_links) return;
    traffic.merge_links();
    most_links = std::max(most_links, 2 * traffic.links.size());
  });
  charge(exchange, traffic, machine, slots.tiles());
  exchange.figures = traffic.figures(machine);
}

void copy_gather(const Gather& gather, Slots& slots) {
  for (const SlotId id : gather.destinations) {
    Slot& slot = slots.in_use(id, Access::Write);
    std::int64_t rows = 0;
    for (const Piece& piece : gather.pieces) {
      copy_rows(part(piece, slots), slot.own.sub({rows, slot.own.rows}));
      rows += piece.rows.size();
    }
    slot.contents = slot.own;
    slot.contents.rows = rows;
  }
}

namespace {

// Returns the address of a byte that is counted without the gaps between rows.
std::byte* byte_at(const ByteRows& rows, std::int64_t byte) {
  if (rows.gapless()) return rows.data + byte;
  return rows.data + byte / rows.row_bytes * rows.stride + byte % rows.row_bytes;
}

}  // namespace

void copy_moves(std::span<const Move> moves, Slots& slots) {
  Slot& slot = slots.in_use(moves.front().to, Access::Write);
  slot.contents = slot.own;
  for (const Move& move : moves) {
    const ByteRows& from = slots.in_use(move.from, Access::Read).contents;
    std::memcpy(byte_at(slot.own, move.to_byte), byte_at(from, move.from_byte),
                std::size_t(move.bytes));
  }
}

namespace {

// Makes the destinations views of the memory that holds all pieces.
void view_in_place(const Gather& gather, Slots& slots) {
  ByteRows all = slots.in_use(gather.first_in_place, Access::Read).contents;
  all.rows = gather.rows_in_place;
  for (const Piece& piece : gather.pieces) {
    const ByteRows rows = part(piece, slots);
    TESSERA_ASSERT(rows.stride == all.stride && rows.data >= all.data &&
                   rows.data + (rows.rows - 1) * rows.stride <=
                       all.data + (all.rows - 1) * all.stride);
  }
  for (const SlotId id : gather.destinations) {
    Slot& slot = slots.in_use(id, Access::Write);
    TESSERA_ASSERT(!slots.has_memory(slot));
    slot.contents = all;
  }
}

}  // namespace

void share_gather(const Gather& gather, Slots& slots) {
  if (gather.rows_in_place > 0) return view_in_place(gather, slots);
  // Memory that the engine allocated takes the pieces from wherever they are.
  if (std::ranges::all_of(gather.destinations,
                          [&](SlotId id) { return slots.needs_memory(slots[id]); }))
    return copy_gather(gather, slots);
  ByteRows whole;
  for (const Piece& piece : gather.pieces) {
    const ByteRows next = part(piece, slots);
    if (next.rows == 0) continue;
    if (whole.rows == 0) {
      whole = next;
      continue;
    }
    // Single rows of placed slots have the stride that the first two places give them.
    const bool placed = next.rows == 1 && slots[piece.slot].spec.placed.data != nullptr;
    if (placed && whole.rows == 1 && next.data - whole.data >= whole.row_bytes)
      whole.stride = next.data - whole.data;
    TESSERA_ASSERT(next.data == whole.data + whole.rows * whole.stride &&
                   (placed || next.stride == whole.stride));
    whole.rows += next.rows;
  }
  for (const SlotId id : gather.destinations) {
    Slot& slot = slots.in_use(id, Access::Write);
    if (!slots.has_memory(slot)) {
      slot.contents = whole;
      slot.contents.row_bytes = slot.spec.row_bytes;
      continue;
    }
    if (slot.own.data != whole.data) copy_rows(whole, slot.own);
    slot.contents = slot.own;
    slot.contents.rows = whole.rows;
  }
}

}  // namespace tessera::device::internal
