#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "tessera/device/engine.hpp"
#include "tessera/device/internal/slots.hpp"

namespace tessera::device::internal {

// The bytes that each tile sends and receives in one step. All vectors but `links` are [tiles].
struct Traffic {
  std::vector<std::int64_t> received;         // taken by this tile but not by all tiles of its bus
  std::vector<std::int64_t> received_shared;  // while every tile of its bus takes the same
  std::vector<std::int64_t> sent;
  std::vector<std::int64_t> senders;  // tiles that it receives from; complete after count_senders()
  std::vector<std::pair<std::int32_t, std::int32_t>> links;  // {receiver, sender}, with repetitions

  void clear(std::int64_t tiles);

  // Removes repetitions from the links.
  void merge_links();

  // Merges the links and adds each of them to `senders`.
  void count_senders();

  // Returns the cycles of one tile: the longer of receiving and sending, which run at the same
  // time.
  Cycles cycles(std::int64_t tile, const Machine& machine) const;

  // Returns the figures of every tile.
  std::vector<TileFigures> figures(const Machine& machine) const;

  Bytes bytes_received(std::int64_t tile) const {
    return Bytes(received[std::size_t(tile)] + received_shared[std::size_t(tile)]);
  }
};

// A run of bytes of a slot and a tile that takes it.
struct TakenRun {
  SlotId from;
  std::int64_t from_byte = 0, bytes = 0;
  std::int32_t taker = 0;

  friend auto operator<=>(const TakenRun&, const TakenRun&) = default;
  bool is_same_run(const TakenRun& other) const {
    return from == other.from && from_byte == other.from_byte && bytes == other.bytes;
  }
};

// Scratch memory that is reused from one prepared exchange to the next.
struct ExchangeScratch {
  Traffic traffic;
  std::vector<std::int32_t> takers;
  std::vector<SlotId> sources, destinations;
  std::vector<TakenRun> runs;
};

// Checks exchange.gathers and computes the other fields of the exchange. Afterwards scratch.traffic
// holds the traffic of this exchange. Throws Error{Internal} as Engine::prepare does.
void prepare_exchange(Exchange& exchange, const Slots& slots, const Machine& machine,
                      ExchangeScratch& scratch);

// Computes the fields of an exchange of these gathers, which it does not keep. Throws
// Error{Internal} if rows do not fit, or if a gather has two destinations on one tile.
void charge_gathers(std::span<const Gather> gathers, Exchange& exchange, const Slots& slots,
                    const Machine& machine, ExchangeScratch& scratch);

// Computes the fields of an exchange of these moves, which it does not keep. A run that several
// tiles take is charged as a message to each of them. Throws Error{Internal} if a run does not fit
// its slots.
void charge_moves(
    const std::function<void(const std::function<void(const Move&)>& visit)>& for_each_move,
    Exchange& exchange, const Slots& slots, const Machine& machine, ExchangeScratch& scratch);

// Performs a gather in Isolate mode: copies the pieces to the destinations' own memory.
void copy_gather(const Gather& gather, Slots& slots);

// Performs a gather in Share mode: landing slots become views of the sources, and slots with memory
// receive a copy; or, if the gather asks for it, destinations become views of all rows. Throws
// Error{Internal} if the pieces are not adjacent in host memory, unless the engine allocated the
// memory of all destinations.
void share_gather(const Gather& gather, Slots& slots);

// Performs moves to one slot, in both modes.
void copy_moves(std::span<const Move> moves, Slots& slots);

// Copies rows to the first rows of `to`, which has as many bytes in a row.
void copy_rows(const ByteRows& from, const ByteRows& to);

}  // namespace tessera::device::internal
