#include "tessera/device/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/device/internal/exchange.hpp"
#include "tessera/device/internal/memory_use.hpp"
#include "tessera/device/internal/seals.hpp"
#include "tessera/device/internal/slots.hpp"

namespace tessera::device {

struct Engine::State {
  Machine machine;
  ExchangeMode mode;
  Executor& executor;
  internal::Slots slots;
  Bytes high_water;
  std::int64_t compute_steps = 0;
  std::vector<std::int64_t> last_compute_step;  // [tiles], counted from 1; 0: none yet
  std::vector<Cycles> vertex_cycles;            // of the current compute step
  internal::ExchangeScratch scratch;
  TileLedger* kept = nullptr;

  std::vector<TileFigures>& keep_step() {
    kept->stages.push_back(slots.stage());
    return kept->steps.emplace_back();
  }
  Ledger ledger;
  std::optional<Fault> next_fault, fault;  // of the next program, of the current one
  std::optional<Struck>* struck = nullptr;
  internal::Seals seals;
  std::vector<SlotId> loaded;  // since the last step, while the memory is watched

  // Calls change(tile) for every tile, on several threads.
  template <class Change>
  void for_each_tile(Change&& change) {
    executor.for_each(slots.tiles(), [&](std::int64_t tile) { change(TileId(tile)); });
  }
};

namespace {

[[noreturn]] void throw_too_full(const MemoryUse& use, const Machine& machine) {
  std::string largest;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, use.at_peak.size()); ++i)
    largest += fmt::format("{}{} {} bytes", i ? ", " : "", use.at_peak[i].name,
                           use.at_peak[i].bytes.value);
  const TilePeak& peak = use.tiles[std::size_t(use.fullest.value)];
  const std::string name = use.stage_name(peak.stage);
  throw Error(
      ErrorCode::LimitExceeded,
      fmt::format("tile {} needs {} bytes in stage {}{} but {} has {} a tile (largest: {}); "
                  "use more tiles, a smaller batch or a smaller memory proportion",
                  use.fullest.value, peak.bytes.value, peak.stage,
                  name.empty() ? "" : fmt::format(" ({})", name), machine.name,
                  machine.tile_memory.value, largest));
}

void open_destinations(const Gather& gather, const internal::Slots& slots, internal::Seals& seals) {
  for (const SlotId id : gather.destinations) seals.open(slots, id);
}

// A vertex may write to the memory of an owned slot through a view of it, so a seal of a slot that
// is shared would end before anybody reads the slot.
void leave_out_shared(const Exchange& exchange, const internal::Slots& slots,
                      internal::Seals& seals) {
  for (const Gather& gather : exchange.gathers) {
    const bool is_viewed = std::any_of(gather.destinations.begin(), gather.destinations.end(),
                                       [&](SlotId id) { return !slots.has_memory(slots[id]); });
    if (!is_viewed) continue;
    for (const Piece& piece : gather.pieces)
      if (slots[piece.slot].spec.kind == SlotKind::Owned) seals.leave_out(slots, piece.slot);
  }
}

// A slot without memory is a view of memory that another slot's seal covers.
void close_destinations(const Gather& gather, const internal::Slots& slots,
                        internal::Seals& seals) {
  for (const SlotId id : gather.destinations)
    if (slots.has_memory(slots[id])) seals.close(slots, id);
}

}  // namespace

ByteRows Tile::view(SlotId slot) const {
  const ByteRows rows = engine_.view(slot);
  TESSERA_ASSERT(engine_.tile_of(slot) == id_);
  return rows;
}

Engine::Engine(const Machine& machine, ExchangeMode mode, Executor& executor)
    : state_(std::make_unique<State>(
          State{machine, mode, executor, internal::Slots(machine.tiles, mode)})) {
  check_machine(machine, "engine");
  state_->last_compute_step.resize(std::size_t(machine.tiles));
}

Engine::~Engine() = default;

const Machine& Engine::machine() const { return state_->machine; }
ExchangeMode Engine::mode() const { return state_->mode; }
Bytes Engine::high_water() const { return state_->high_water; }
const Ledger& Engine::ledger() const { return state_->ledger; }
SlotId Engine::add_slot(const SlotSpec& spec) { return state_->slots.add(spec); }
ByteRows Engine::view(SlotId slot) const {
  return state_->slots.in_use(slot, Access::ReadWrite).contents;
}
TileId Engine::tile_of(SlotId slot) const { return state_->slots[slot].spec.tile; }

void Engine::seal(std::span<const std::string> stage_names) {
  const MemoryUse use = memory(stage_names);
  state_->high_water = use.high_water();
  if (state_->high_water > state_->machine.tile_memory) throw_too_full(use, state_->machine);
  state_->slots.allocate();
}

MemoryUse Engine::memory(std::span<const std::string> stage_names) const {
  MemoryUse use = internal::memory_use(state_->slots);
  use.stages.assign(stage_names.begin(), stage_names.end());
  return use;
}

void Engine::begin_program() {
  state_->ledger.steps.clear();
  state_->fault = std::exchange(state_->next_fault, std::nullopt);
  state_->kept = nullptr;
  state_->seals.begin(0);
  state_->loaded.clear();
  state_->slots.begin_program();
}

void Engine::watch_memory() { state_->seals.begin(state_->slots.count()); }

Damage Engine::end_watch() {
  State& state = *state_;
  if (!state.seals.is_on()) return {};
  seal_loads();
  state.for_each_tile([&](TileId tile) { state.seals.open_all(state.slots, tile); });
  const Damage damage = state.seals.damage(state.slots);
  state.seals.begin(0);
  return damage;
}

// Loads run on the calling thread, so their slots are summed up on all threads before the next
// step.
void Engine::seal_loads() {
  std::vector<SlotId>& loaded = state_->loaded;
  state_->executor.for_each(std::ssize(loaded), [&](std::int64_t i) {
    state_->seals.close(state_->slots, loaded[std::size_t(i)]);
  });
  loaded.clear();
}

void Engine::begin_stage(int stage) {
  state_->slots.enter_stage(stage);
  // In Share mode, slots keep their memory when their interval ends.
  if (state_->seals.is_on() && state_->mode == ExchangeMode::Isolate)
    state_->for_each_tile([&](TileId tile) { state_->seals.open_ended(state_->slots, tile); });
  const std::span<const SlotId> starting = state_->slots.starting();
  state_->executor.for_each(std::ssize(starting), [&](std::int64_t i) {
    state_->slots.start_slot(starting[std::size_t(i)]);
  });
}

void Engine::allow(std::string_view step, std::span<const Access> buffers) {
  state_->slots.allow(step, buffers);
}

void Engine::load(SlotId slot, ByteRows rows) {
  state_->slots.note_step();
  internal::Slot& target = state_->slots.in_use(slot, Access::Write);
  TESSERA_ASSERT(rows.rows <= target.spec.rows && rows.row_bytes == target.spec.row_bytes);
  if (state_->seals.is_on()) {
    state_->seals.open(state_->slots, slot);
    state_->loaded.push_back(slot);
  }
  if (!state_->slots.has_memory(target)) {
    target.contents = rows;
    return;
  }
  internal::copy_rows(rows, target.own);
  target.contents = target.own;
  target.contents.rows = rows.rows;
}

Exchange Engine::prepare(std::vector<Gather> gathers) const {
  return prepare(std::move(gathers), {});
}

Exchange Engine::prepare(std::vector<Gather> gathers, std::vector<Move> moves) const {
  Exchange exchange;
  exchange.gathers = std::move(gathers);
  exchange.moves = std::move(moves);
  std::stable_sort(exchange.moves.begin(), exchange.moves.end(),
                   [](const Move& a, const Move& b) { return a.to < b.to; });
  prepare_again(exchange);
  return exchange;
}

Exchange Engine::charge_gathers(std::span<const Gather> gathers) const {
  Exchange exchange;
  internal::charge_gathers(gathers, exchange, state_->slots, state_->machine, state_->scratch);
  return exchange;
}

Exchange Engine::charge_moves(
    const std::function<void(const std::function<void(const Move&)>& visit)>& for_each_move) const {
  Exchange exchange;
  internal::charge_moves(for_each_move, exchange, state_->slots, state_->machine, state_->scratch);
  return exchange;
}

void Engine::prepare_again(Exchange& exchange) const {
  internal::prepare_exchange(exchange, state_->slots, state_->machine, state_->scratch);
  leave_out_shared(exchange, state_->slots, state_->seals);
}

void Engine::inject(const Fault& fault, std::optional<Struck>* struck) {
  if (state_->mode != ExchangeMode::Isolate)
    throw Error(ErrorCode::InvalidArgument,
                "a fault needs tiles with memory of their own: run in Isolate mode");
  if (fault.tile.value < 0 || fault.tile.value >= state_->slots.tiles() || fault.step < 0 ||
      fault.bit < 0)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("fault at tile {}, step {}, bit {}: tiles are 0..{}, steps and bits "
                            "from 0 on",
                            fault.tile.value, fault.step, fault.bit, state_->slots.tiles() - 1));
  state_->next_fault = fault;
  state_->struck = struck;
}

bool Engine::is_faulty() const { return state_->fault.has_value(); }

void Engine::begin_step() {
  state_->slots.note_step();
  if (!state_->loaded.empty()) seal_loads();
  if (!state_->fault || state_->fault->step != std::ssize(state_->ledger.steps)) return;
  const std::optional<Struck> struck = state_->slots.flip(state_->fault->tile, state_->fault->bit);
  if (state_->struck != nullptr) *state_->struck = struck;
}

void Engine::exchange(Phase phase, const Exchange& exchange) {
  begin_step();
  const auto count = static_cast<std::int64_t>(exchange.gathers.size());
  if (state_->mode == ExchangeMode::Isolate) {
    state_->executor.for_each(count, [&](std::int64_t i) {
      const Gather& gather = exchange.gathers[std::size_t(i)];
      open_destinations(gather, state_->slots, state_->seals);
      internal::copy_gather(gather, state_->slots);
      close_destinations(gather, state_->slots, state_->seals);
    });
  } else {
    for (const Gather& gather : exchange.gathers) {
      open_destinations(gather, state_->slots, state_->seals);
      internal::share_gather(gather, state_->slots);
      close_destinations(gather, state_->slots, state_->seals);
    }
  }
  run_moves(exchange);
  // No tile has to wait if no data move between tiles.
  const Cycles sync = exchange.moved > Bytes() ? state_->machine.sync : Cycles();
  state_->ledger.steps.push_back({phase, StepKind::Exchange, exchange.cycles, sync,
                                  exchange.critical_tile, exchange.tile_sum, exchange.moved,
                                  exchange.tiles});
  if (state_->kept != nullptr) keep_exchange(exchange);
}

void Engine::run_moves(const Exchange& exchange) {
  const std::vector<std::size_t>& firsts = exchange.first_moves;
  state_->executor.for_each(std::ssize(firsts), [&](std::int64_t i) {
    const auto next = std::size_t(i) + 1;
    const std::size_t begin = firsts[std::size_t(i)];
    const std::size_t end = next < firsts.size() ? firsts[next] : exchange.moves.size();
    const SlotId to = exchange.moves[begin].to;
    state_->seals.open(state_->slots, to);
    internal::copy_moves(std::span(exchange.moves).subspan(begin, end - begin), state_->slots);
    state_->seals.close(state_->slots, to);
  });
}

// An exchange with a list does not store the traffic of each tile, so it is computed again.
void Engine::keep_exchange(const Exchange& exchange) {
  if (!exchange.figures.empty()) {
    state_->keep_step() = exchange.figures;
    return;
  }
  Exchange copy = exchange;
  prepare_again(copy);
  state_->keep_step() = state_->scratch.traffic.figures(state_->machine);
}

void Engine::control(Phase phase, TileId tile) {
  begin_step();
  constexpr std::int64_t kWordBytes = 4;
  const Machine& machine = state_->machine;
  const Cycles told(ceil_div(kWordBytes, machine.exchange_bytes_per_cycle));
  const Cycles cycles = machine.control + told;
  const std::int64_t others = machine.tiles - 1;
  state_->ledger.steps.push_back({phase, StepKind::Control, cycles, machine.sync + machine.launch,
                                  tile, cycles, Bytes(kWordBytes * others), 1});
  if (state_->kept == nullptr) return;
  std::vector<TileFigures>& figures = state_->keep_step();
  figures.assign(std::size_t(machine.tiles), {Cycles(), Bytes(), Bytes(kWordBytes)});
  figures[std::size_t(tile.value)] = {cycles, Bytes(kWordBytes), Bytes()};
}

void Engine::keep_tiles(TileLedger* tiles) {
  state_->kept = tiles;
  if (tiles != nullptr) *tiles = {};
}

void Engine::run_vertices(std::span<const TileId> tiles, Vertex vertex, void* object) {
  begin_step();
  ++state_->compute_steps;
  for (const TileId tile : tiles) {
    TESSERA_ASSERT(tile.value >= 0 && tile.value < state_->slots.tiles());
    std::int64_t& last_step = state_->last_compute_step[std::size_t(tile.value)];
    TESSERA_ASSERT(last_step != state_->compute_steps);  // else two threads write its slots
    last_step = state_->compute_steps;
  }
  state_->vertex_cycles.resize(tiles.size());
  state_->executor.for_each(static_cast<std::int64_t>(tiles.size()), [&](std::int64_t i) {
    const Tile tile(*this, tiles[std::size_t(i)]);
    state_->seals.open_written(state_->slots, tile.id());
    state_->vertex_cycles[std::size_t(i)] = vertex(object, tile);
    state_->seals.close_written(state_->slots, tile.id());
    state_->slots.check_guards(tile.id());
  });
}

void Engine::close_compute(Phase phase, std::span<const TileId> tiles) {
  StepRecord record{.phase = phase, .kind = StepKind::Compute};
  record.overhead = state_->machine.launch;
  record.tiles = std::ssize(tiles);
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const Cycles cycles = state_->vertex_cycles[i];
    record.tile_sum += cycles;
    const bool tie_below = cycles == record.cycles && tiles[i] < record.critical_tile;
    if (i == 0 || cycles > record.cycles || tie_below) record.critical_tile = tiles[i];
    record.cycles = std::max(record.cycles, cycles);
  }
  state_->ledger.steps.push_back(std::move(record));
  if (state_->kept == nullptr) return;
  std::vector<TileFigures>& figures = state_->keep_step();
  figures.resize(std::size_t(state_->machine.tiles));
  for (std::size_t i = 0; i < tiles.size(); ++i)
    figures[std::size_t(tiles[i].value)].cycles = state_->vertex_cycles[i];
}

}  // namespace tessera::device
