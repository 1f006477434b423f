#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "tessera/codelets/cost/network_cycles.hpp"
#include "tessera/codelets/cost/vector_cycles.hpp"
#include "tessera/runtime/internal/embedding_pass.hpp"

namespace tessera::runtime::internal {

using device::ByteRows;
using device::Gather;
using device::SlotId;
using device::SlotKind;

namespace {

// Calls use(sorted) with the sorted list as numbers of 16 or 32 bits.
template <class Use>
auto with_sorted(const EmbeddingSizes& sizes, std::int64_t x_parts, const std::byte* list,
                 Use&& use) {
  constexpr std::int64_t kMost = std::numeric_limits<std::uint16_t>::max();
  if (sizes.ids <= kMost && x_parts * sizes.slots < kMost)
    return use(reinterpret_cast<const std::uint16_t*>(list));
  return use(reinterpret_cast<const std::uint32_t*>(list));
}

std::int64_t bytes_of_sorted(const EmbeddingSizes& sizes, std::int64_t x_parts) {
  return with_sorted(sizes, x_parts, nullptr, [&]<class Number>(const Number*) {
    return 2 * sizes.ids * std::int64_t{sizeof(Number)};
  });
}

}  // namespace

void sort_places(const EmbeddingSizes& sizes, std::int64_t x_parts, EmbeddingLists& lists) {
  std::vector<std::int32_t> order(lists.places.size());
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](std::int32_t i) {  // -1 is the largest
    return static_cast<std::uint32_t>(lists.places[std::size_t(i)]);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int32_t a, std::int32_t b) { return key(a) < key(b); });
  lists.sorted.resize(std::size_t(bytes_of_sorted(sizes, x_parts)));
  with_sorted(sizes, x_parts, lists.sorted.data(), [&]<class Number>(const Number* list) {
    auto* const to = const_cast<Number*>(list);  // of lists.sorted
    for (std::size_t i = 0; i < order.size(); ++i) {
      to[i] = static_cast<Number>(key(order[i]));
      to[order.size() + i] = static_cast<Number>(order[i]);
    }
  });
}

std::int64_t EmbeddingUpdate::sorted_bytes() const {
  return bytes_of_sorted(sizes, spec.grid.splits.x);
}

EmbeddingUpdate::EmbeddingUpdate(const PassSpec& s, const EmbeddingSizes& of_run,
                                 TileProgram& of_pass)
    : EmbeddingPass(s, of_run, Served::NoZ, of_pass) {
  wide_ = cheapest_columns();
  for (const TileId tile : all)
    if (!packing(map.cell(tile)).empty()) packers_.push_back(tile);
  const Dims& splits = spec.grid.splits;
  placed.resize(std::size_t(splits.y * splits.x * columns(0) * slot_bytes()));
}

std::int64_t EmbeddingUpdate::sharers(std::int64_t wide) const {
  const Dims& splits = spec.grid.splits;
  return std::min(splits.x * splits.z / ceil_div(columns(0), wide), splits.x);
}

std::int64_t EmbeddingUpdate::cheapest_columns() const {
  const std::int64_t workers = engine.machine().workers, parts = spec.grid.splits.x;
  std::int64_t best = 0;
  Cycles least;
  for (std::int64_t wide = 1; wide <= columns(0); ++wide) {
    if (sharers(wide) == 0) continue;  // fewer tiles than that many columns need
    const std::int64_t of_parts = ceil_div(parts, sharers(wide));
    const std::int64_t sums = wide * of_parts * sizes.slots;
    const std::int64_t entries = ceil_div(ceil_div(sizes.ids * of_parts, parts), workers);
    const Cycles cycles =
        codelets::zero_cycles(sums * std::int64_t{sizeof(float)}, workers) +
        codelets::scatter_add_cycles({sizes.ids, entries, wide}, spec.data_type(), workers) +
        codelets::cast_cycles(sums, DataType::Float, spec.data_type(), workers) +
        Cycles(ceil_div(wide * sizes.ids * element(), engine.machine().exchange_bytes_per_cycle));
    if (best > 0 && cycles >= least) continue;
    best = wide;
    least = cycles;
  }
  return best;
}

EmbeddingUpdate::Packing EmbeddingUpdate::packing(Cell c) const {
  const std::int64_t tile = c.x * spec.grid.splits.z + c.z, shared = sharers(wide_);
  const std::int64_t first = std::min(tile / shared * wide_, columns(c.y));
  return {{first, std::min(first + wide_, columns(c.y))},
          share_of(spec.grid.splits.x, 1, shared, tile % shared)};
}

void EmbeddingUpdate::declare_buffers() {
  slices_home_ = program.add_buffer("share of the slices");
  places_ = program.add_buffer("places of the ids");
  slices_ = program.add_buffer("columns of the slices");
  packed_ = program.add_buffer("columns by row");
  travelling_.rows_use[0] = program.add_buffer("rows to update");
  travelling_.sums_use[0] = program.add_buffer("slices of these rows");
  sums_ = program.add_buffer("sums of slices");
  updated_ = program.add_buffer("updated values");
  if (!loop.possible()) return;
  travelling_.rows_use[1] = program.add_buffer("rows of another cell");
  travelling_.sums_use[1] = program.add_buffer("slices of another cell");
}

void EmbeddingUpdate::declare_alone(Executor&) {
  declare_buffers();
  add_slots();
  const BufferId rows = travelling_.rows_use[0], slices = travelling_.sums_use[0];
  Uses loaded{{}, {homes.use.words, homes.use.payload, rows_home, places_home, slices_home_}};
  if (loop.possible()) loaded.writes.push_back(loop.words());
  program.step(NodeKind::Load, {}, loaded, [this] { load(); });
  if (spreads_operands(spec.placement, Pass::Fwd)) declare_arranging(slices_home_);
  program.exchange(Phase::PreArrange,
                   {{rows_home, places_home, slices_home_}, {rows, places_, slices_}},
                   prearrange_gathers());
  program.compute(Phase::Rearrange, {{places_, slices_}, {packed_}}, packers_,
                  [this](const device::Tile& tile) { return pack(tile); });
  program.exchange(Phase::PreArrange, {{packed_}, {slices}}, gathers_to_parts());
  program.compute(Phase::Distribute, {{homes.use.words, homes.use.payload, rows, slices}, {sums_}},
                  all, [this](const device::Tile& tile) { return add_up(tile, /*first=*/true); });
  declare_travel();
  program.compute(Phase::Update, {{homes.use.payload, sums_}, {updated_}}, all,
                  [this](const device::Tile& tile) { return update(tile); });
  program.step(NodeKind::Collect, {}, {{updated_}, {}}, [this] { collect(); });
}

// The rows and sums of the cells move; words and values stay.
void EmbeddingUpdate::declare_travel() {
  if (!loop.possible()) return;
  const auto& [rows_use, sums_use, rows, sums] = travelling_;
  Uses uses{
      {homes.use.words, homes.use.payload, rows_use[0], sums_use[0], rows_use[1], sums_use[1]},
      {sums_}};
  device::Exchange usual;
  const bool along_x = spec.grid.splits.x > 1;
  list_move({along_x ? 1 : 0, along_x ? 0 : 1, 0}, usual);
  const device::Exchange* const usual_move = program.exchange_of(std::move(usual.gathers));
  loop.declare_loops(program, [&] {
    for (std::size_t into = 0; into < 2; ++into)
      program.when(
          into == 0 ? "the next move is into the first buffer"
                    : "the next move is into the second buffer",
          [this, into] { return at_ != into && loop.now().after != now_; },
          [&] {
            program.exchange(
                Phase::Propagate,
                {{rows_use[1 - into], sums_use[1 - into]}, {rows_use[into], sums_use[into]}},
                usual_move, [this] { move(); });
          });
    loop.declare_visit(program, uses, all,
                       [this](const device::Tile& tile) { return add_up(tile, /*first=*/false); });
  });
}

void EmbeddingUpdate::add_slots() {
  add_homes();
  const int buffers = loop.possible() ? 2 : 1;
  for (const TileId tile : all) {
    const Cell c = map.cell(tile);
    const Packing packs = packing(c);
    TileSlots slots;
    for (int b = 0; b < buffers; ++b) {
      const auto at = std::size_t(b);
      travelling_.rows[at].push_back(
          program.add_slot(travelling_.rows_use[at], tile, 1, rows_bytes(), SlotKind::Owned));
      travelling_.sums[at].push_back(
          program.add_slot(travelling_.sums_use[at], tile, columns(0), slot_bytes()));
    }
    if (!packs.empty()) {
      const std::int64_t line = sizes.ids * element(), own = packs.columns.size();
      slots.places_home = program.add_slot(places_home, tile, 1, sorted_bytes());
      slots.places = program.add_slot(places_, tile, 1, sorted_bytes());
      slots.slices_home = program.add_slot(slices_home_, tile, own, line);
      slots.slices = program.add_slot(slices_, tile, own, line);
      for (std::int64_t x = packs.parts.begin; x < packs.parts.end; ++x) {
        const std::int64_t column =
            (c.y * spec.grid.splits.x + x) * columns(0) + packs.columns.begin;
        slots.packed.push_back(program.add_slot(
            packed_, tile, own, slot_bytes(), SlotKind::Owned, 1,
            {placed.data() + column * slot_bytes(), own, slot_bytes(), slot_bytes()}));
      }
    }
    slots.sums =
        program.add_slot(sums_, tile, 1, values() * std::int64_t{sizeof(float)}, SlotKind::Owned);
    slots.updated = program.add_slot(updated_, tile, 1, values() * element(), SlotKind::Owned);
    tiles_.push_back(slots);
  }
  loop.declare(program);
}

std::vector<Gather> EmbeddingUpdate::prearrange_gathers() const {
  std::vector<Gather> gathers;
  for (const TileId tile : all) {
    const auto t = std::size_t(tile.value);
    add_spread(gathers, rows_homes[t], travelling_.rows[0][t], 1, rows_bytes(),
               spec.grid.splits.x * rows_bytes());
  }
  for (const TileId tile : packers_) {
    const TileSlots& slots = tiles_[std::size_t(tile.value)];
    const std::int64_t line = sizes.ids * element();
    const std::int64_t own = packing(map.cell(tile)).columns.size();
    add_spread(gathers, slots.places_home, slots.places, 1, sorted_bytes(), sorted_bytes());
    add_spread(gathers, slots.slices_home, slots.slices, own, own * line, spec.grid.size.y * line);
  }
  return gathers;
}

// All tiles of a cell take the rows of its part of x from the owners of its columns.
std::vector<Gather> EmbeddingUpdate::gathers_to_parts() const {
  std::vector<Gather> to_parts;
  const Dims& splits = spec.grid.splits;
  for (std::int64_t x = 0; x < splits.x; ++x)
    for (std::int64_t y = 0; y < splits.y; ++y) {
      Gather gather;
      for (std::int64_t owner = 0; owner < splits.x * splits.z; ++owner) {
        const Cell c{owner / splits.z, y, owner % splits.z, 0};
        const Packing packs = packing(c);
        if (packs.empty() || x < packs.parts.begin || x >= packs.parts.end) continue;
        const TileSlots& slots = tiles_[std::size_t(map.tile(c).value)];
        gather.pieces.push_back(
            {slots.packed[std::size_t(x - packs.parts.begin)], {0, packs.columns.size()}});
      }
      for (std::int64_t z = 0; z < splits.z; ++z)
        gather.destinations.push_back(
            travelling_.sums[0][std::size_t(map.tile({x, y, z, 0}).value)]);
      to_parts.push_back(std::move(gather));
    }
  return to_parts;
}

void EmbeddingUpdate::load() {
  at_ = 0;
  now_ = {};
  load_homes();
  const std::int64_t line = sizes.ids * element();
  for (const TileId tile : packers_) {
    const TileSlots& slots = tiles_[std::size_t(tile.value)];
    const Cell c = map.cell(tile);
    const Range own = packing(c).columns;
    engine.load(slots.places_home, one_row(lists->sorted.data(), sorted_bytes()));
    const std::int64_t first = spec.grid.y_range(c.y).begin + own.begin;
    engine.load(slots.slices_home, rows_at(slices_in_ + first * line, own.size(), line));
  }
}

// Adds up the slices of each row in float and rounds the sums once. The list is sorted by place, so
// workers have entries of places of their own.
Cycles EmbeddingUpdate::pack(const device::Tile& tile) const {
  const TileSlots& slots = tiles_[std::size_t(tile.id().value)];
  const Packing packs = packing(map.cell(tile.id()));
  const std::int64_t own = packs.columns.size(), first = packs.parts.begin * sizes.slots;
  const std::int64_t places_here = packs.parts.size() * sizes.slots;
  const std::byte* const from = tile.view(slots.slices).data;
  const std::int64_t workers = engine.machine().workers;
  std::vector<float> sums(static_cast<std::size_t>(places_here));
  std::int64_t slowest = 0;
  with_sorted(sizes, spec.grid.splits.x, tile.view(slots.places).data, [&](const auto* sorted) {
    const auto* const begin = std::lower_bound(sorted, sorted + sizes.ids, first);
    const auto* const end = std::lower_bound(begin, sorted + sizes.ids, first + places_here);
    slowest = codelets::most_entries(std::span(begin, end), workers);
    with_type(spec.data_type(), [&]<class T>(T) {
      for (std::int64_t column = 0; column < own; ++column) {
        std::fill(sums.begin(), sums.end(), 0.0f);
        const T* const slices = reinterpret_cast<const T*>(from) + column * sizes.ids;
        for (const auto* entry = begin; entry < end; ++entry) {
          const std::int64_t at = *entry - first, id = entry[sizes.ids];
          const bool is_legal = at >= 0 && at < places_here && id < sizes.ids;
          if (is_legal) sums[std::size_t(at)] += float(slices[id]);  // else memory was damaged
        }
        for (std::int64_t part = 0; part < packs.parts.size(); ++part) {
          const ByteRows packed = tile.view(slots.packed[std::size_t(part)]);
          std::transform(sums.begin() + part * sizes.slots, sums.begin() + (part + 1) * sizes.slots,
                         reinterpret_cast<T*>(packed.data + column * packed.stride),
                         [](float sum) { return T(sum); });
        }
      }
    });
  });
  return codelets::zero_cycles(own * places_here * std::int64_t{sizeof(float)}, workers) +
         codelets::scatter_add_cycles({sizes.ids, slowest, own}, spec.data_type(), workers) +
         codelets::cast_cycles(own * places_here, DataType::Float, spec.data_type(), workers);
}

Cycles EmbeddingUpdate::add_up(const device::Tile& tile, bool first) const {
  const auto t = std::size_t(tile.id().value);
  const TileSlots& slots = tiles_[t];
  const Cell c = map.cell(tile.id()), of = map.moved(c, {now_.x, now_.y, 0});
  const std::vector<std::int32_t> slot_of = slot_of_rows(tile, travelling_.rows[at_][t]);
  const ByteRows sums = tile.view(slots.sums);
  Cycles cycles = enter_cycles();
  if (first) {
    std::memset(sums.data, 0, std::size_t(sums.bytes()));
    cycles += codelets::zero_cycles(sums.bytes(), engine.machine().workers);
  }
  codelets::RowsArgs args = visit_args(tile, homes.on(tile.id()), of, slot_of);
  args.columns = {0, columns(of.y)};
  return cycles + row_cycles(codelets::add_to_rows(args, tile.view(travelling_.sums[at_][t]).data,
                                                   reinterpret_cast<float*>(sums.data)),
                             codelets::kAddInstructions);
}

// Lists the gathers of a move `by`; now_ is the displacement after it.
void EmbeddingUpdate::list_move(Cell by, device::Exchange& move) const {
  const auto& [rows_use, sums_use, rows, sums] = travelling_;
  move.gathers.clear();
  for (const TileId tile : all) {
    const Cell c = map.cell(tile), of = map.moved(c, {now_.x, now_.y, 0});
    const auto from = std::size_t(map.tile(map.moved(c, by)).value);
    const auto to = std::size_t(tile.value);
    move.gathers.push_back({{{rows[at_][from], {0, 1}}}, {rows[1 - at_][to]}});
    move.gathers.push_back({{{sums[at_][from], {0, columns(of.y)}}}, {sums[1 - at_][to]}});
  }
}

// The rows and sums move towards lower indices, opposite to travelling buckets.
void EmbeddingUpdate::move() {
  const Displacement to = loop.now().after, from = now_;
  now_ = {to.x, to.y, 0};
  list_move({to.x - from.x, to.y - from.y, 0}, move_);
  engine.prepare_again(move_);
  engine.exchange(Phase::Propagate, move_);
  at_ = 1 - at_;
}

Cycles EmbeddingUpdate::update(const device::Tile& tile) const {
  const auto t = std::size_t(tile.id().value);
  const TileSlots& slots = tiles_[t];
  const auto* const sums = reinterpret_cast<const float*>(tile.view(slots.sums).data);
  const std::byte* const old = tile.view(homes.on(tile.id()).payload).data;
  std::byte* const updated = tile.view(slots.updated).data;
  with_type(spec.data_type(), [&]<class T>(T) {
    for (std::int64_t i = 0; i < values(); ++i)
      reinterpret_cast<T*>(updated)[i] =
          T(float(reinterpret_cast<const T*>(old)[i]) + scale_ * sums[i]);
  });
  return codelets::update_cycles(values(), codelets::Optimiser{}, spec.data_type(),
                                 engine.machine().workers);
}

void EmbeddingUpdate::collect() const {
  const auto slot_of = [this](TileId tile) { return tiles_[std::size_t(tile.value)].updated; };
  collect_payloads(engine, map, spec.grid, slot_of, values() * element(), values_out_);
}

void EmbeddingUpdate::start(const BucketImage& of_layer, const EmbeddingLists& of_run,
                            const std::byte* slices, float scale, std::byte* values) {
  image = of_layer;
  lists = &of_run;
  slices_in_ = slices;
  values_out_ = values;
  scale_ = scale;
}

}  // namespace tessera::runtime::internal
