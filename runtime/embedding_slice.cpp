#include <cstring>
#include <utility>

#include "tessera/codelets/bucket_layout.hpp"
#include "tessera/codelets/cost/matmul_cycles.hpp"
#include "tessera/codelets/cost/vector_cycles.hpp"
#include "tessera/planner/dense_plan.hpp"
#include "tessera/runtime/internal/embedding_pass.hpp"
#include "tessera/runtime/internal/visit.hpp"

namespace tessera::runtime::internal {

using device::ByteRows;
using device::Gather;
using device::SlotId;
using device::SlotKind;

EmbeddingPass::EmbeddingPass(const PassSpec& s, const EmbeddingSizes& of_run, Served served,
                             TileProgram& of_pass)
    : spec(s),
      sizes(of_run),
      program(of_pass),
      map(s.parts(), TileOrder::Yzx),
      shape(values_shape(s)),
      all(map.all()),
      loop(s, served) {
  homes = add_home_buckets(program, spec, map);
  rows_home = program.add_buffer("share of the rows");
  places_home = program.add_buffer("share of the places");
  for (const TileId tile : all)
    if (owned(map.cell(tile)).size() > 0) owners.push_back(tile);
}

void EmbeddingPass::add_homes() {
  for (const TileId tile : all)
    rows_homes.push_back(program.add_slot(rows_home, tile, 1, rows_bytes()));
}

void EmbeddingPass::load_homes() {
  load_home_buckets(engine, map, shape, homes, image);
  loop.load(engine, image.travel_words);
  for (const TileId tile : all)
    engine.load(rows_homes[std::size_t(tile.value)],
                one_row(lists->rows.data() + map.cell(tile).x * sizes.slots, rows_bytes()));
}

void EmbeddingPass::declare_arranging(BufferId buffer) {
  program.charge(
      Phase::Arrange, {{buffer}, {}}, all,
      codelets::arrange_cycles(sizes.ids * spec.grid.size.y * element(), engine.machine().tiles,
                               engine.machine().arrange_bytes_per_cycle));
}

void EmbeddingPass::add_spread(std::vector<Gather>& gathers, SlotId home, SlotId to,
                               std::int64_t rows, std::int64_t bytes, std::int64_t of_all) const {
  gathers.push_back(
      {{{home, {0, rows}}}, {to}, planner::even_spread_senders(engine.machine(), bytes, of_all)});
}

std::vector<std::int32_t> EmbeddingPass::slot_of_rows(const device::Tile& tile, SlotId rows) const {
  std::vector<std::int32_t> slot_of(std::size_t(spec.grid.x_range(0).size()), -1);
  const auto* const list = reinterpret_cast<const std::int32_t*>(tile.view(rows).data);
  for (std::int64_t slot = 0; slot < sizes.slots; ++slot)
    if (list[slot] >= 0 && list[slot] < std::ssize(slot_of))  // beyond: memory was damaged
      slot_of[std::size_t(list[slot])] = std::int32_t(slot);
  return slot_of;
}

Cycles EmbeddingPass::enter_cycles() const {
  return codelets::enter_rows_cycles(spec.grid.x_range(0).size(), sizes.slots,
                                     engine.machine().workers);
}

codelets::RowsArgs EmbeddingPass::visit_args(const device::Tile& tile, BucketSlots bucket, Cell of,
                                             std::span<const std::int32_t> slot_of) const {
  const std::int64_t z = spec.grid.z_per_tile();
  const codelets::KernelArgs words{
      .meta = tile.view(bucket.meta).data,
      .values = tile.view(bucket.payload).data,
      .sub_group = codelets::sub_group_id(of.x, of.y, spec.grid.splits.y),
      .block = spec.grid.block,
      .in = {nullptr, spec.grid.y_range(0).size(), z, z},
      .out = {nullptr, spec.grid.x_range(0).size(), z, z}};
  if (engine.is_faulty())
    check_bucket_words(
        spec, tile.id(), words,
        {shape.meta_bytes / spec.word_bytes(), spec.grid.blocks * spec.grid.block.area()});
  return {.meta = words.meta,
          .values = words.values,
          .sub_group = words.sub_group,
          .block = spec.grid.block,
          .type = spec.data_type(),
          .word_bits = spec.grid.word_bits,
          .slot_of = slot_of,
          .slots = sizes.slots,
          .workers = engine.machine().workers};
}

Cycles EmbeddingPass::row_cycles(const codelets::RowsWork& work, std::int64_t per_value) const {
  return codelets::scan_cycles(spec.method)(work.scan) +
         codelets::walk_rows_cycles(work, per_value, engine.machine().workers);
}

EmbeddingSlice::EmbeddingSlice(const PassSpec& s, const EmbeddingSizes& of_run,
                               TileProgram& of_pass)
    : EmbeddingPass(s, of_run, Served::AllOfZ, of_pass), travelling_(map, shape, loop) {}

void EmbeddingSlice::declare_buffers() {
  rows_ = program.add_buffer("rows to look up");
  places_ = program.add_buffer("places of the ids");
  partial_ = program.add_buffer("looked-up rows");
  received_ = program.add_buffer("columns of all parts");
  result_ = program.add_buffer("columns by id");
  if (spec.grid.splits.z > 1)
    arrived_ = {program.add_buffer("words of the cell"), program.add_buffer("values of the cell")};
}

void EmbeddingSlice::declare_alone(Executor&) {
  declare_buffers();
  add_slots();
  Uses loaded{{}, {homes.use.words, homes.use.payload, rows_home, places_home}};
  if (loop.possible()) loaded.writes.push_back(loop.words());
  program.step(NodeKind::Load, {}, loaded, [this] { load(); });
  const std::vector<BufferId> own{homes.use.words, homes.use.payload};
  Uses moved{{rows_home, places_home}, {rows_, places_}};
  Uses visited{{rows_, homes.use.words, homes.use.payload}, {partial_}};
  if (spec.grid.splits.z > 1) {
    moved.add({own, {arrived_.words, arrived_.payload}});
    visited.add({{arrived_.words, arrived_.payload}, {}});
  }
  program.exchange(Phase::PreArrange, moved, prearrange_gathers());
  program.compute(Phase::Distribute, visited, all,
                  [this](const device::Tile& tile) { return distribute(tile); });
  if (loop.possible())
    loop.declare_loops(program, [&] {
      travelling_.declare_move(program, homes.slots, own);
      Uses uses{{rows_}, {partial_}};
      travelling_.add_words_and_payloads(uses.reads);
      loop.declare_visit(program, uses, all, [this](const device::Tile& tile) {
        const BucketSlots arrived = travelling_.current(tile.id());
        return visit(tile, {&arrived, 1});
      });
    });
  program.exchange(Phase::Reduce, {{partial_}, {received_}}, gathers_to_owners());
  program.compute(Phase::Reduce, {{received_, places_}, {result_}}, owners,
                  [this](const device::Tile& tile) { return select(tile); });
  if (spreads_result(spec.placement, Pass::Fwd)) declare_arranging(result_);
  program.step(NodeKind::Collect, {}, {{result_}, {}}, [this] { collect(); });
}
void EmbeddingSlice::add_slots() {
  add_homes();
  for (const TileId tile : all) {
    const Cell c = map.cell(tile);
    const std::int64_t own = owned(c).size();
    TileSlots slots;
    slots.rows = program.add_slot(rows_, tile, 1, rows_bytes());
    slots.partial =
        program.add_slot(partial_, tile, looked_up(c).size(), slot_bytes(), SlotKind::Owned);
    if (own > 0) {
      slots.places_home = program.add_slot(places_home, tile, 1, places_bytes());
      slots.places = program.add_slot(places_, tile, 1, places_bytes());
      slots.received = program.add_slot(received_, tile, spec.grid.splits.x * own, slot_bytes(),
                                        SlotKind::Owned);
      slots.result = program.add_slot(result_, tile, own, sizes.ids * element(), SlotKind::Owned);
    }
    for (std::int64_t k = 0; k < spec.grid.splits.z; ++k)
      slots.arrived.push_back(k == c.z ? homes.on(tile)
                                       : add_bucket_slots(program, tile, shape, arrived_));
    tiles_.push_back(std::move(slots));
  }
  travelling_.declare_buffers(program);
  loop.declare(program);
}

// The owner of columns receives them from the tiles of every part of x that looked them up.
std::vector<Gather> EmbeddingSlice::gathers_to_owners() const {
  std::vector<Gather> gathers;
  for (const TileId tile : owners) {
    const Cell c = map.cell(tile);
    const Range own = owned(c);
    Gather gather{{}, {tiles_[std::size_t(tile.value)].received}};
    for (std::int64_t x = 0; x < spec.grid.splits.x; ++x)
      for (std::int64_t k = 0; k < spec.grid.splits.z; ++k) {
        const Cell from{x, c.y, k, c.g};
        const Range has = looked_up(from);
        const Range both = common(own, has);
        if (both.size() == 0) continue;
        gather.pieces.push_back({tiles_[std::size_t(map.tile(from).value)].partial,
                                 {both.begin - has.begin, both.end - has.begin}});
      }
    gathers.push_back(std::move(gather));
  }
  return gathers;
}

std::vector<Gather> EmbeddingSlice::prearrange_gathers() const {
  std::vector<Gather> gathers;
  for (const TileId tile : all) {
    const TileSlots& slots = tiles_[std::size_t(tile.value)];
    add_spread(gathers, rows_homes[std::size_t(tile.value)], slots.rows, 1, rows_bytes(),
               spec.grid.splits.x * rows_bytes());
    if (spec.grid.splits.z > 1)
      gather_to_cell(gathers, map, tile, spec.grid.splits.z, homes.on(tile),
                     [&](TileId to, std::int64_t z) {
                       return tiles_[std::size_t(to.value)].arrived[std::size_t(z)];
                     });
  }
  for (const TileId tile : owners) {
    const TileSlots& slots = tiles_[std::size_t(tile.value)];
    add_spread(gathers, slots.places_home, slots.places, 1, places_bytes(), places_bytes());
  }
  return gathers;
}

void EmbeddingSlice::load() {
  load_homes();
  for (const TileId tile : owners)
    engine.load(tiles_[std::size_t(tile.value)].places_home,
                one_row(lists->places.data(), places_bytes()));
}

Cycles EmbeddingSlice::visit(const device::Tile& tile, std::span<const BucketSlots> buckets) const {
  const Cell c = map.cell(tile.id());
  const TileSlots& slots = tiles_[std::size_t(tile.id().value)];
  const std::vector<std::int32_t> slot_of = slot_of_rows(tile, slots.rows);
  std::byte* const to = tile.view(slots.partial).data;
  Cycles cycles;
  for (const BucketSlots& bucket : buckets) {
    codelets::RowsArgs args = visit_args(tile, bucket, c, slot_of);
    args.columns = looked_up(c);
    cycles += row_cycles(codelets::copy_rows(args, to), codelets::kCopyInstructions);
  }
  return cycles;
}

Cycles EmbeddingSlice::distribute(const device::Tile& tile) const {
  const TileSlots& slots = tiles_[std::size_t(tile.id().value)];
  const ByteRows partial = tile.view(slots.partial);
  if (partial.bytes() > 0) std::memset(partial.data, 0, std::size_t(partial.bytes()));
  return codelets::zero_cycles(partial.bytes(), engine.machine().workers) + enter_cycles() +
         visit(tile, slots.arrived);
}

// Puts the columns in the order of the ids.
Cycles EmbeddingSlice::select(const device::Tile& tile) const {
  const TileSlots& slots = tiles_[std::size_t(tile.id().value)];
  const std::int64_t own = owned(map.cell(tile.id())).size();
  const auto* const places = reinterpret_cast<const std::int32_t*>(tile.view(slots.places).data);
  const std::byte* const from = tile.view(slots.received).data;
  std::byte* const to = tile.view(slots.result).data;
  with_type(spec.data_type(), [&]<class T>(T) {
    const auto slots_of_part = static_cast<std::int32_t>(sizes.slots);
    T* out = reinterpret_cast<T*>(to);
    for (std::int64_t column = 0; column < own; ++column)
      for (std::int64_t i = 0; i < sizes.ids; ++i, ++out) {
        const std::int32_t part = places[i] / slots_of_part, slot = places[i] % slots_of_part;
        *out = places[i] < 0 || part >= spec.grid.splits.x  // beyond: memory was damaged
                   ? T()
                   : reinterpret_cast<const T*>(from)[(part * own + column) * sizes.slots + slot];
      }
  });
  return codelets::gather_cycles(own * sizes.ids, spec.data_type(), engine.machine().workers);
}

void EmbeddingSlice::collect() const {
  for (const TileId tile : owners) {
    const Cell c = map.cell(tile);
    const ByteRows result = engine.view(tiles_[std::size_t(tile.value)].result);
    const std::int64_t first = spec.grid.y_range(c.y).begin + owned(c).begin;
    std::memcpy(out_ + first * sizes.ids * element(), result.data, std::size_t(result.bytes()));
  }
}

void EmbeddingSlice::start(const BucketImage& of_layer, const EmbeddingLists& of_run,
                           std::byte* out) {
  image = of_layer;
  lists = &of_run;
  out_ = out;
}

}  // namespace tessera::runtime::internal
