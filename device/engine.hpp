#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tessera/base/dims.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/base/units.hpp"
#include "tessera/device/ledger.hpp"
#include "tessera/device/machine.hpp"

namespace tessera::device {

// How data gets from tile to tile. Results and ledger are the same in both.
//   Share    a slice is a view of where the data lie; moving data is a change of view
//   Isolate  every tile has its own memory and nothing else; bytes are really copied
enum class ExchangeMode { Share, Isolate };

using SlotId = Id<struct SlotKindTag>;

// Rows of bytes: row i starts at data + i * stride. In host memory or in a tile's.
struct ByteRows {
  std::byte* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t row_bytes = 0;
  std::int64_t stride = 0;  // bytes from row to row, >= row_bytes

  bool gapless() const { return stride == row_bytes || rows <= 1; }
  ByteRows sub(Range r) const { return {data + r.begin * stride, r.size(), row_bytes, stride}; }
  std::int64_t bytes() const { return rows * row_bytes; }
};

// A named piece of one tile's memory.
//   Owned    has memory in both modes: what vertices write
//   Landing  only receives (by load or exchange): in Share mode a view, without memory of its own
enum class SlotKind { Owned, Landing };

struct SlotSpec {
  TileId tile;
  std::string_view name;  // must outlive the engine: a literal
  std::int64_t rows = 0;  // the most it ever holds
  std::int64_t row_bytes = 0;
  SlotKind kind = SlotKind::Owned;
  int first_phase = 0, last_phase = 0;  // in which phases of its program the memory is needed
};

// Part of a slot that travels.
struct Piece {
  SlotId slot;
  Range rows;
};

// Every destination receives all pieces, one below the other, in this order. A multicast: each
// piece is sent once. In Share mode several pieces must lie side by side in host memory already
// (slices of one operand do); a broken promise is Error{Internal}.
struct Gather {
  std::vector<Piece> pieces;
  std::vector<SlotId> destinations;
};

// A checked exchange step with its cost, made by Engine::prepare. No slot is both a source and a
// destination, so the order of copies cannot matter.
struct Exchange {
  std::vector<Gather> gathers;
  Cycles cycles;
  TileId critical_tile;
  Cycles tile_sum;
  Bytes moved;
};

class Engine;

// What a vertex sees: the slots of its own tile.
class Tile {
 public:
  TileId id() const { return id_; }
  // Error{Internal} for another tile's slot.
  ByteRows view(SlotId slot) const;

 private:
  friend class Engine;
  Tile(const Engine& engine, TileId id) : engine_(engine), id_(id) {}
  const Engine& engine_;
  TileId id_;
};

// A bulk-synchronous machine: steps of computing (every tile on its own memory) and of exchange,
// each behind a barrier. It knows nothing of matrices or codelets: it runs what it is given and
// charges what that reports.
// Invariants:
//   1. slots_ is fixed after seal(); views change only inside load() and exchange().
//   2. A vertex writes only its own tile's slots, so a step never sees what another tile wrote in
//      the same step, and bits do not depend on the number of threads.
//   3. ledger_ is written by the calling thread alone.
// One thread at a time may call; compute() spreads over the executor.
class Engine {
 public:
  Engine(const Machine& machine, ExchangeMode mode, Executor& executor);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const Machine& machine() const;
  ExchangeMode mode() const;

  // Error{InvalidArgument} for a tile the machine has not.
  SlotId add_slot(const SlotSpec& spec);
  // Ends adding slots. Error{LimitExceeded} naming tile, phase, bytes and the largest slots when
  // some tile needs more memory than it has.
  void seal();
  // The most memory any tile needs in any phase.
  Bytes high_water() const;

  // Host to tile: streamed in before the program starts, not charged. `rows` must stay in place as
  // long as the slot is used.
  void load(SlotId slot, ByteRows rows);
  // Where a slot's contents are now, for the host to read.
  ByteRows view(SlotId slot) const;
  TileId tile_of(SlotId slot) const;

  // Checks the gathers and works out what they cost on this machine.
  Exchange prepare(std::vector<Gather> gathers) const;
  void exchange(std::string_view phase, const Exchange& exchange);

  // Runs body(tile) -> Cycles on each of `tiles` (no tile twice).
  template <class Body>
  void compute(std::string_view phase, std::span<const TileId> tiles, Body&& body) {
    run_vertices(
        tiles,
        [](void* object, const Tile& tile) {
          return (*static_cast<std::remove_reference_t<Body>*>(object))(tile);
        },
        &body);
    close_compute(phase, tiles);
  }

  const Ledger& ledger() const;
  Ledger take_ledger();

 private:
  using Vertex = Cycles (*)(void* object, const Tile& tile);
  void run_vertices(std::span<const TileId> tiles, Vertex vertex, void* object);
  void close_compute(std::string_view phase, std::span<const TileId> tiles);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera::device
