#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tessera/base/dims.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/base/phase.hpp"
#include "tessera/base/units.hpp"
#include "tessera/device/ledger.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/device/memory.hpp"

namespace tessera::device {

// The two ways to move data between tiles. Results and ledgers are the same in both.
//   Share    a slot is a view of the memory that holds the data; an exchange changes views
//   Isolate  every tile has its own memory and reaches no other; an exchange copies bytes
enum class ExchangeMode { Share, Isolate };

// The index of a slot of an engine, in the order in which slots were added.
using SlotId = Id<struct SlotKindTag>;

// A view of rows of bytes in host memory or in a tile's memory: row i starts at data + i * stride.
struct ByteRows {
  std::byte* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t row_bytes = 0;
  std::int64_t stride = 0;  // bytes from row to row, >= row_bytes

  bool gapless() const { return stride == row_bytes || rows <= 1; }
  ByteRows sub(Range r) const { return {data + r.begin * stride, r.size(), row_bytes, stride}; }
  // Returns these rows, and of each of them these bytes.
  ByteRows sub(Range r, Range bytes_of_row) const {
    return {data + r.begin * stride + bytes_of_row.begin, r.size(), bytes_of_row.size(), stride};
  }
  std::int64_t bytes() const { return rows * row_bytes; }
};

// The kind of a slot.
//   Owned    has its own memory in both modes; vertices write to it
//   Landing  only receives, by load() or exchange(); in Share mode it is a view without memory
enum class SlotKind { Owned, Landing };

// The access that a step has to the slots of a buffer.
enum class Access : std::uint8_t { None = 0, Read = 1, Write = 2, ReadWrite = 3 };

// The description of a slot: a named piece of one tile's memory with `rows` rows of `row_bytes`
// bytes. The interval first_stage .. last_stage names the stages of the program, as begin_stage()
// counts them, that need the memory.
struct SlotSpec {
  TileId tile;
  std::string_view name;  // must outlive the engine, as a literal does
  std::int64_t rows = 0;  // the largest number of rows that the slot ever holds
  std::int64_t row_bytes = 0;
  SlotKind kind = SlotKind::Owned;
  int first_stage = 0, last_stage = 0;  // 0 <= first_stage <= last_stage
  int buffer = -1;                      // index for Engine::allow; -1: every access is allowed

  // Memory of the host that an owned slot uses in Share mode, so that slots of several tiles are
  // adjacent there and a gather can take them without a copy. It has the slot's rows and must
  // outlive the engine. Empty: the engine allocates memory.
  ByteRows placed = {};
};

// The part of a slot that an exchange sends.
struct Piece {
  SlotId slot;
  Range rows;
};

// A multicast: each piece is sent once, and every destination receives all pieces, one below the
// other, in this order. No two destinations are on one tile. In Share mode, pieces must be adjacent
// in host memory, as slices of one operand are, unless the engine allocated the memory of all
// destinations; otherwise Engine::exchange throws Error{Internal}.
struct Gather {
  std::vector<Piece> pieces;
  std::vector<SlotId> destinations;
  // If this is above 0, the data are charged as if each destination received them from this many
  // other tiles, wherever the pieces are held. The sending tiles are then charged nothing.
  std::int64_t senders = 0;

  // If this is above 0, vertices find the rows of the pieces where they are: in Share mode, the
  // destinations, which are landing slots, become views of this many rows of host memory, from the
  // first row of the slot `first_in_place` on. All pieces must be slices of these rows. In Isolate
  // mode, destinations receive the pieces one below the other as ever.
  std::int64_t rows_in_place = 0;
  SlotId first_in_place = {};
};

// A run of bytes that goes from one slot into the middle of another one. Offsets count the bytes of
// all rows, without the gaps between them. A run is within one row of a slot whose rows may be
// apart in memory: a placed one, or one without memory of its own. The rest of the destination
// keeps its contents, so a slot can be put together from many moves. The destination must have
// memory, as owned slots do. Moves of the same run to several tiles are one multicast: it is sent
// once, and all tiles of a bus that take it receive it together.
struct Move {
  SlotId from, to;
  std::int64_t from_byte = 0, to_byte = 0, bytes = 0;
};

// A checked exchange step with its cost, made by Engine::prepare. No slot is both a source and a
// destination, so the order of the copies does not matter. Runs of two moves to one slot must not
// overlap.
struct Exchange {
  std::vector<Gather> gathers;
  std::vector<Move> moves;               // in ascending order of their destinations
  std::vector<std::size_t> first_moves;  // index of the first move to each destination
  Cycles cycles;                         // of the slowest tile, without sync
  TileId critical_tile;                  // the slowest tile; the lowest number on ties
  Cycles tile_sum;                       // over all tiles
  Bytes moved;                           // received by all tiles together
  std::int64_t tiles = 0;                // tiles that send or receive
  std::vector<TileFigures> figures;      // [tiles], of an exchange without a list (charge_moves)
};

// A fault to inject: one bit of a tile's memory flips immediately before a step.
//   step  of the program, counted from 0; the index of the step's record in the ledger
//   bit   counts through the memory of the tile's slots whose interval contains the current stage,
//         in the order in which they were added: bit % 8 (0 is the lowest) of byte bit / 8
struct Fault {
  TileId tile;
  std::int64_t step = 0, bit = 0;

  friend bool operator==(const Fault&, const Fault&) = default;
};

// The place where a fault flipped a bit.
struct Struck {
  std::string_view slot;  // name of the slot
  std::int64_t byte = 0;  // offset in the slot
};

// The slots whose contents changed although no step wrote them.
struct Damage {
  std::int64_t slots = 0;
  TileId tile;            // of the first of them, in the order in which slots were added
  std::string_view slot;  // its name
};

class Engine;

// The machine as a vertex sees it: the slots of the vertex's own tile.
class Tile {
 public:
  TileId id() const { return id_; }

  // Returns the contents of a slot of this tile. Throws Error{Internal} if the slot belongs to
  // another tile, and wherever Engine::view does.
  ByteRows view(SlotId slot) const;

 private:
  friend class Engine;
  Tile(const Engine& engine, TileId id) : engine_(engine), id_(id) {}
  const Engine& engine_;
  TileId id_;
};

// A bulk-synchronous machine. It runs compute steps, in which every tile works on its own memory,
// and exchange steps, in which tiles send and receive; a barrier separates the steps. The engine
// knows nothing of matrices or codelets: it runs the vertices that it is given and charges the
// cycles that they report.
//
// Invariants:
//   1. No slot is added after seal(). Only load(), exchange() and begin_stage() change views.
//   2. A vertex writes only to slots of its own tile, so no step sees data that another tile wrote
//      in the same step, and results do not depend on the number of threads.
//   3. Only the calling thread writes the ledger and the stage.
//   4. Once a stage has begun, a slot is touched only in its interval, first_stage to last_stage.
//   5. If a step has declared its accesses with allow(), it touches nothing else.
//
// A program runs like this; the stages are the numbers in which slots count their intervals:
//   engine.begin_program();
//   engine.begin_stage(0);   // before the loads: they belong to the first stage
//   engine.load(...);  engine.exchange(...);
//   engine.begin_stage(1);
//   engine.compute(...);
//   engine.view(...);        // results are read before the next program begins
//
// A call that breaks these rules throws Error{Internal}, because programs come from this library
// and not from its users. Only one thread may call an engine at a time; compute() and the copies
// of an exchange run on the executor's threads.
class Engine {
 public:
  // Makes an engine without slots. The executor must outlive it. Throws Error{BadInput} if
  // check_machine refuses the machine.
  Engine(const Machine& machine, ExchangeMode mode, Executor& executor);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const Machine& machine() const;
  ExchangeMode mode() const;

  // Adds a slot and returns its index. It must be called before seal(). Throws
  // Error{InvalidArgument} if the machine does not have the tile.
  SlotId add_slot(const SlotSpec& spec);

  // Ends the adding of slots and allocates their memory. Throws Error{LimitExceeded}, which names
  // the tile, the stage, the bytes and the largest slots, if a tile needs more memory than it has.
  // Phases may be given names, which appear in that message.
  void seal(std::span<const std::string> stage_names = {});

  // Returns the memory that every tile needs in its fullest stage. It may be called before seal()
  // and for a program that does not fit. O(slots * stages).
  MemoryUse memory(std::span<const std::string> stage_names = {}) const;

  // Returns the largest number of bytes that any tile needs in any stage; 0 before seal().
  Bytes high_water() const;

  // Starts a run from the beginning: the ledger is empty, even if an earlier run failed halfway,
  // and no stage has begun. O(steps of the last run).
  void begin_program();

  // Begins a stage. The numbers of stages increase within a program and may skip some. The first
  // stage begins before any load or step of the program. From this call on,
  //   * load(), exchange(), compute() and view() refuse a slot outside its interval and name it;
  //   * slots whose interval begins here, or began in a skipped stage, hold nothing of earlier
  //     stages or runs. In Share mode a landing slot is empty, and an owned slot keeps its bytes,
  //     because clearing costs time. In Isolate mode all bytes of these slots are 0xff, and they
  //     use the memory of slots whose interval has ended.
  // In Isolate mode the first call moves every slot, which invalidates views taken before it; later
  // programs of this engine must begin a stage too. A program that begins no stage is not checked,
  // and each of its slots has separate memory. O(slots); in Isolate mode also O(bytes of the slots
  // that begin).
  void begin_stage(int stage);

  // Names the next step and declares, by SlotSpec::buffer, the accesses that it may make. Holds
  // until the next call or the next program. load() and the destinations of an exchange need
  // Write, the sources of an exchange need Read, and view() needs either. Any other access throws
  // Error{Internal}, which names slot and step. Both arguments must stay valid for as long. An
  // empty span allows every access.
  void allow(std::string_view step, std::span<const Access> buffers);

  // Loads `rows` from the host into a slot. Data are streamed in before the program's first step
  // and are not charged. `rows` must stay in place for as long as the slot is used. Throws
  // Error{Internal} if the rows do not fit the slot, or if an access to it is not allowed.
  void load(SlotId slot, ByteRows rows);

  // Returns the current contents of a slot, for the host to read. Throws Error{Internal} outside
  // the slot's interval.
  ByteRows view(SlotId slot) const;

  // Returns the bytes of a move of an exchange that Share mode only charges (charge_moves), where a
  // vertex reads them: where they are, or in Isolate mode where they have arrived.
  const std::byte* moved_bytes(const Move& move) const {
    return mode() == ExchangeMode::Share ? view(move.from).data + move.from_byte
                                         : view(move.to).data + move.to_byte;
  }

  TileId tile_of(SlotId slot) const;

  // Checks the gathers and computes their cost on this machine. Throws Error{Internal} if rows do
  // not fit, if a gather has two destinations on one tile, or if a slot is a destination twice or
  // is both a source and a destination.
  Exchange prepare(std::vector<Gather> gathers) const;

  // Does the same for moves, in any order, and for an exchange of both. Throws Error{Internal} if a
  // run does not fit its slots or if a destination has no memory.
  Exchange prepare_moves(std::vector<Move> moves) const { return prepare({}, std::move(moves)); }
  Exchange prepare(std::vector<Gather> gathers, std::vector<Move> moves) const;

  // Returns an exchange that costs what prepare(gathers) would charge, but has no list of gathers
  // and moves no data. For Share mode, if vertices read the pieces where they are; neither pieces
  // nor destinations need contents, and one slot may stand for several destinations of its tile.
  Exchange charge_gathers(std::span<const Gather> gathers) const;

  // Calls for_each_move(visit), which calls visit(move) for every move, and returns an exchange
  // that costs what prepare_moves() would charge, but has no list of moves and copies nothing. For
  // Share mode, if vertices read the runs where they are; destinations need no memory.
  Exchange charge_moves(const std::function<void(const std::function<void(const Move&)>& visit)>&
                            for_each_move) const;

  // Does what prepare() does for gathers that were changed in place. It reuses the memory of
  // earlier calls and allocates only if that is too small.
  void prepare_again(Exchange& exchange) const;

  // Runs an exchange and records it in the ledger under `phase`. A sync is charged only if data
  // move between tiles.
  void exchange(Phase phase, const Exchange& exchange);

  // Runs body(tile) -> Cycles on each of `tiles`, in any order and on several threads, and records
  // the step in the ledger under `phase`. Throws Error{Internal} if a tile is named twice.
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

  // Flips one bit in the next program that runs, to try out self-checks. If the fault strikes, its
  // place is written to `struck`, which must live as long as the program runs. Throws
  // Error{InvalidArgument} in Share mode, where tiles have no memory of their own, and if the
  // machine does not have the tile. Every step makes one comparison for this, with or without a
  // fault.
  void inject(const Fault& fault, std::optional<Struck>* struck = nullptr);

  // Returns true if the current program has a fault, so that vertices may read invalid data.
  bool is_faulty() const;

  // Watches the memory of the tiles until the end of the program that has just begun: each slot is
  // summed up when a load or a step has written it, and again before it is overwritten, so a change
  // between two steps is noticed, whatever made it. In Share mode, loaded rows are watched where
  // they are in the host's memory. Charges nothing. Time: a load, an exchange or a vertex that
  // writes bytes reads them once more, and twice if they are overwritten or the program ends. In
  // Share mode a slot whose memory a prepared exchange shares with others is not watched, because
  // its watch would end before they read it.
  void watch_memory();

  // Ends the watch and returns the slots that have changed; none if watch_memory() was not called.
  // O(bytes of the slots).
  Damage end_watch();

  // Charges a decision: `tile` computes it from words in its memory, and every other tile of the
  // machine receives it as one word of 4 bytes. Nothing is computed here; the caller decides.
  void control(Phase phase, TileId tile);

  // Records every following step tile by tile as well, until begin_program() or
  // keep_tiles(nullptr). `tiles` is emptied first. O(tiles) memory and time per step.
  void keep_tiles(TileLedger* tiles);

  // Returns the cycles and bytes of the steps since begin_program().
  const Ledger& ledger() const;

 private:
  using Vertex = Cycles (*)(void* object, const Tile& tile);
  void begin_step();
  void seal_loads();
  void run_vertices(std::span<const TileId> tiles, Vertex vertex, void* object);
  void close_compute(Phase phase, std::span<const TileId> tiles);
  void keep_exchange(const Exchange& exchange);
  void run_moves(const Exchange& exchange);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera::device
