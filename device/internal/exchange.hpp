#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "tessera/device/engine.hpp"
#include "tessera/device/internal/slots.hpp"

namespace tessera::device::internal {

// Bytes each tile sends and receives in one step.
struct Traffic {
  std::vector<std::int64_t> received;         // alone on its bus
  std::vector<std::int64_t> received_shared;  // while every tile of its bus takes the same
  std::vector<std::int64_t> sent;
  std::vector<std::int64_t> senders;  // tiles it receives from; after count_senders()
  std::vector<std::pair<std::int32_t, std::int32_t>> links;  // receiver, sender; with repetitions

  void clear(std::int64_t tiles);
  // Adds the links to the senders.
  void count_senders();
  // A tile sends and receives at the same time.
  Cycles cycles(std::int64_t tile, const Machine& machine) const;
  Bytes bytes_received(std::int64_t tile) const {
    return Bytes(received[std::size_t(tile)] + received_shared[std::size_t(tile)]);
  }
};

// Storage that preparing an exchange uses again.
struct ExchangeScratch {
  Traffic traffic;
  std::vector<std::int32_t> takers;
  std::vector<SlotId> sources, destinations;
};

// Checks exchange.gathers and works out the rest of the exchange. scratch.traffic is left behind.
void prepare_exchange(Exchange& exchange, const Slots& slots, const Machine& machine,
                      ExchangeScratch& scratch);

// The two ways to carry a gather out: copy to the destinations' own memory, or make them look at
// the sources.
void copy_gather(const Gather& gather, Slots& slots);
void share_gather(const Gather& gather, Slots& slots);

// Copies rows to gapless memory.
void copy_rows(const ByteRows& from, std::byte* to);

}  // namespace tessera::device::internal
