#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tessera/base/dims.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/base/phase.hpp"
#include "tessera/base/units.hpp"
#include "tessera/device/ledger.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/device/memory.hpp"

namespace tessera::device {

// How data gets from tile to tile. Results and ledger are the same in both.
//   Share    a slice is a view of where the data lie; moving data is a change of view
//   Isolate  every tile has its own memory and nothing else; bytes are really copied
enum class ExchangeMode { Share, Isolate };

// A slot of an engine, in the order they were added.
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

// What the step that runs may do with the slots of a buffer.
enum class Access : std::uint8_t { None = 0, Read = 1, Write = 2, ReadWrite = 3 };

// What a tile is asked to hold: rows x row_bytes bytes.
struct SlotSpec {
  TileId tile;
  std::string_view name;  // must outlive the engine: a literal
  std::int64_t rows = 0;  // the most it ever holds
  std::int64_t row_bytes = 0;
  SlotKind kind = SlotKind::Owned;
  int first_phase = 0, last_phase = 0;  // >= 0: the phases of its program that need the memory
  int buffer = -1;                      // index for Engine::allow; -1: never refused
};

// Part of a slot that travels.
struct Piece {
  SlotId slot;
  Range rows;
};

// Every destination (no two on one tile) receives all pieces, one below the other, in this order. A
// multicast: each piece is sent once. In Share mode several pieces must lie side by side in host
// memory already (slices of one operand do); a broken promise is Error{Internal}.
struct Gather {
  std::vector<Piece> pieces;
  std::vector<SlotId> destinations;
  // Above 0: what is modelled comes from so many tiles that are none of the destinations', wherever
  // the pieces are held.
  std::int64_t senders = 0;
};

// A checked exchange step with its cost, made by Engine::prepare. No slot is both a source and a
// destination, so the order of copies cannot matter.
struct Exchange {
  std::vector<Gather> gathers;
  Cycles cycles;
  TileId critical_tile;
  Cycles tile_sum;
  Bytes moved;
  std::int64_t tiles = 0;  // that send or receive
};

// One bit of a tile's memory that changes by itself, right before a step.
//   step  of the program, counted from 0: the step that its ledger lists there
//   bit   of the memory of the tile's living slots, one behind the other in the order they were
//         added: bit % 8 (0 the lowest) of byte bit / 8
struct Fault {
  TileId tile;
  std::int64_t step = 0, bit = 0;

  friend bool operator==(const Fault&, const Fault&) = default;
};
// Where it struck.
struct Struck {
  std::string_view slot;  // its name
  std::int64_t byte = 0;  // of the slot
};

class Engine;

// What a vertex sees: the slots of its own tile.
class Tile {
 public:
  TileId id() const { return id_; }
  // Error{Internal} for another tile's slot, and as Engine::view.
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
//   1. No slot is added after seal(); only load(), exchange() and begin_phase() change views.
//   2. A vertex writes only its own tile's slots, so a step never sees what another tile wrote in
//      the same step, and bits do not depend on the number of threads.
//   3. Ledger and phase are written by the calling thread alone.
//   4. Once a phase has begun, a slot is touched only in its phases, first_phase to last_phase.
//   5. Where a step says what it reads and writes, it touches nothing else.
// A program is run like this (phases are the numbers that slots were given):
//   engine.begin_program();
//   engine.begin_phase(0);   // before the loads: they belong to the first phase
//   engine.load(...);  engine.exchange(...);
//   engine.begin_phase(1);
//   engine.compute(...);
//   engine.view(...);        // results are read before the next program begins
// Whatever breaks these rules is Error{Internal}: programs are ours. One thread at a time may call;
// compute() spreads over the executor.
class Engine {
 public:
  Engine(const Machine& machine, ExchangeMode mode, Executor& executor);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const Machine& machine() const;
  ExchangeMode mode() const;

  // Before seal(). Error{InvalidArgument} for a tile the machine has not.
  SlotId add_slot(const SlotSpec& spec);
  // Ends adding slots. Error{LimitExceeded} naming tile, phase, bytes and the largest slots when
  // some tile needs more memory than it has. Phases may have names, for messages and memory().
  void seal(std::span<const std::string> phase_names = {});
  // What every tile holds in its fullest phase, also before seal() and where that is too much.
  // O(slots * phases).
  MemoryUse memory(std::span<const std::string> phase_names = {}) const;
  // The most memory any tile needs in any phase.
  Bytes high_water() const;

  // Starts a run from the beginning: the ledger is empty, whatever an earlier run that failed has
  // left there, and no phase has begun. O(steps of the last run).
  void begin_program();
  // Phase `phase` begins. Phases rise within a program, numbers may be left out; the first one
  // begins before any load or step of the program. From here on
  //   * load(), exchange(), compute() and view() refuse a slot outside its phases, naming it;
  //   * slots whose first phase this is, or was left out, hold nothing of earlier phases or runs: a
  //     landing slot in Share mode is empty; in Isolate mode all bytes are 0xff, and they lie where
  //     slots lay that have ended. Owned slots in Share mode keep their bytes: clearing costs time.
  // The first call moves every slot in Isolate mode, so views taken before it are dead; later
  // programs of this engine must begin a phase too. A program that begins none runs unchecked, with
  // memory of its own for every slot. O(slots), in Isolate mode also O(bytes that begin).
  void begin_phase(int phase);

  // The step that comes next, and by SlotSpec::buffer what it may do; holds until the next call or
  // the next program. load() and the destinations of an exchange need Write, the sources of an
  // exchange Read, view() either; what else is touched is Error{Internal} naming slot and step.
  // Both arguments must live as long.
  void allow(std::string_view step, std::span<const Access> buffers);

  // Host to tile: streamed in before the program's first step, not charged. `rows` must stay in
  // place as long as the slot is used.
  void load(SlotId slot, ByteRows rows);
  // Where a slot's contents are now, for the host to read. Error{Internal} outside its phases.
  ByteRows view(SlotId slot) const;
  TileId tile_of(SlotId slot) const;

  // Checks the gathers and works out what they cost on this machine.
  Exchange prepare(std::vector<Gather> gathers) const;
  // The same for gathers that were changed in place; allocates nothing that an earlier call has
  // already.
  void prepare_again(Exchange& exchange) const;
  void exchange(Phase phase, const Exchange& exchange);

  // Runs body(tile) -> Cycles on each of `tiles`, in any order; Error{Internal} for a tile twice.
  template <class Body>
  void compute(Phase phase, std::span<const TileId> tiles, Body&& body) {
    run_vertices(
        tiles,
        [](void* object, const Tile& tile) {
          return (*static_cast<std::remove_reference_t<Body>*>(object))(tile);
        },
        &body);
    close_compute(phase, tiles);
  }

  // For trying out self-checks: this bit flips in the next program that runs. Only in Isolate mode,
  // where each tile has memory of its own, else Error{InvalidArgument}, as for a tile there is not.
  // Costs a comparison a step, whether there is a fault or not. Where it strikes, if it does, is
  // written to `struck`, which must live as long as the program runs.
  void inject(const Fault& fault, std::optional<Struck>* struck = nullptr);
  // The program that runs has a fault in it, so that what vertices read may be nonsense.
  bool is_faulty() const;

  // A decision: `tile` works it out from what it holds, and every other tile of the machine
  // receives it as one word of 4 bytes. Only charged; the caller goes on as it likes.
  void control(Phase phase, TileId tile);

  // From here on every step is also written down tile by tile, until begin_program() or
  // keep_tiles(nullptr). Costs O(tiles) memory and time a step.
  void keep_tiles(TileLedger* tiles);

  // The cycles and bytes of the steps since begin_program().
  const Ledger& ledger() const;

 private:
  using Vertex = Cycles (*)(void* object, const Tile& tile);
  void begin_step();
  void run_vertices(std::span<const TileId> tiles, Vertex vertex, void* object);
  void close_compute(Phase phase, std::span<const TileId> tiles);
  void keep_exchange(const Exchange& exchange);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera::device
