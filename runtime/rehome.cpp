#include "tessera/runtime/internal/rehome.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tessera/base/error.hpp"
#include "tessera/base/rehome_steps.hpp"
#include "tessera/planner/layouts.hpp"
#include "tessera/runtime/internal/home_buckets.hpp"

namespace tessera::runtime::internal {
namespace {

using device::SlotId;
using device::SlotKind;

constexpr Phase kRehomePhase = Phase::RehomeValues;
constexpr std::int64_t kEntryBytes = sizeof(std::uint32_t);

// Copies a value of the size of `Element`. The addresses need not be aligned.
template <class Element>
void copy_value(const std::byte* from, std::byte* to) {
  std::memcpy(to, from, sizeof(Element));
}

}  // namespace

RehomePass::RehomePass(const RehomeSpec& s, TileProgram& of_state,
                       const RehomeHomes* homes_of_network)
    : spec(s),
      tables(s.from, s.to, s.groups),
      program(of_state),
      engine(of_state.engine()),
      shared(homes_of_network),
      tiles(tables.to_map().all()),
      zeros(std::size_t(from_bytes())) {
  if (shared == nullptr) result.resize(std::size_t(s.groups * s.to.buckets() * to_bytes()));
}

void RehomePass::declare_load() {
  use.home = shared != nullptr
                 ? shared->from.use.payload
                 : program.add_buffer("values of the first layout", /*resident=*/true);
  if (passes()) use.nothing = program.add_buffer("no values", /*resident=*/shared != nullptr);
  use.table = program.add_buffer("re-home table", /*resident=*/true);
  use.result = shared != nullptr ? shared->to.use.payload
                                 : program.add_buffer("bucket values", /*resident=*/true);
  const std::int64_t holders = tables.from_map().tiles();
  for (std::int64_t t = 0; t < tables.ring(); ++t)
    homes.push_back(
        shared != nullptr && t < holders
            ? shared->from.on(TileId(t)).payload
            : program.add_slot(t < holders ? use.home : use.nothing, TileId(t), 1, from_bytes()));
  for (const TileId tile : tiles)
    receivers.push_back(
        {.met = {},
         .table = program.add_slot(use.table, tile, 1, table_bytes()),
         .result = shared != nullptr
                       ? shared->to.on(tile).payload
                       : program.add_slot(use.result, tile, 1, to_bytes(), SlotKind::Owned)});
  Uses loaded{{}, {use.table}};
  if (shared == nullptr) loaded.writes.push_back(use.home);
  if (passes()) loaded.writes.push_back(use.nothing);
  program.step(NodeKind::Load, std::nullopt, loaded, [this] { load(); });
}

void RehomePass::declare() {
  use.gathered = program.add_buffer("gathered values");
  for (const TileId tile : tiles)
    for (std::int64_t k = 0; k < met(tile).count(); ++k)
      receivers[std::size_t(tile.value)].met.push_back(
          program.add_slot(use.gathered, tile, spec.from.splits.z, from_bytes()));
  program.exchange(kRehomePhase, {{use.home}, {use.gathered}}, cells_to_receivers());
  Uses unpacked{{use.home, use.gathered, use.table}, {use.result}};
  if (passes()) unpacked.reads.push_back(use.nothing);
  compute(unpacked, [this]<class Element>(Element, const device::Tile& tile) {
    return unpack<Element>(tile);
  });
  if (passes()) declare_passing();
  if (shared == nullptr)
    program.step(NodeKind::Collect, std::nullopt, {{use.result}, {}}, [this] { collect(); });
}

void RehomePass::declare_passing() {
  use.passing = {program.add_buffer("passing values"), program.add_buffer("other passing values")};
  for (std::size_t buffer = 0; buffer < 2; ++buffer)
    for (std::int64_t t = 0; t < tables.ring(); ++t)
      passing[buffer].push_back(program.add_slot(use.passing[buffer], TileId(t), 1, from_bytes()));
  for (const bool far : {false, true}) {
    const std::int64_t by = far ? tables.stride() : 1;
    pass_on[far] = {program.exchange_of(further(by, homes, 0)),
                    program.exchange_of(further(by, passing[0], 1)),
                    program.exchange_of(further(by, passing[1], 0))};
  }
  program.repeat(
      "a spilled value has not passed yet", [this] { return moved++ < tables.moves().size(); },
      [this] {
        program.step(NodeKind::Exchange, kRehomePhase,
                     {{use.home, use.nothing, use.passing[0], use.passing[1]},
                      {use.passing[0], use.passing[1]}},
                     [this] {
                       const std::size_t way = moved == 1 ? 0 : 1 + moved % 2;
                       engine.exchange(kRehomePhase, *pass_on[move().far][way]);
                     });
        program.when(
            "a tile picks a value at this distance", [this] { return move().wanted; },
            [this] {
              compute({{use.passing[0], use.passing[1], use.table}, {use.result}},
                      [this]<class Element>(Element, const device::Tile& tile) {
                        return pick<Element>(tile);
                      });
            });
      });
}

// Returns the gathers that bring the buckets of each cell to all tiles whose cells overlap it.
std::vector<device::Gather> RehomePass::cells_to_receivers() const {
  const Dims& splits = spec.from.splits;
  const std::int64_t cells = splits.x * splits.y;
  std::vector<device::Gather> gathers(std::size_t(spec.groups * cells));
  for (std::int64_t g = 0; g < spec.groups; ++g)
    for (std::int64_t x = 0; x < splits.x; ++x)
      for (std::int64_t y = 0; y < splits.y; ++y)
        for (std::int64_t z = 0; z < splits.z; ++z) {
          const TileId tile = tables.from_map().tile({x, y, z, g});
          gathers[std::size_t(g * cells + x * splits.y + y)].pieces.push_back(
              {homes[std::size_t(tile.value)], {0, 1}});
        }
  for (const TileId tile : tiles) {
    const MetCells cells_met = met(tile);
    const std::int64_t g = tables.to_map().cell(tile).g;
    for (std::int64_t x = cells_met.x.begin; x < cells_met.x.end; ++x)
      for (std::int64_t y = cells_met.y.begin; y < cells_met.y.end; ++y)
        gathers[std::size_t(g * cells + x * splits.y + y)].destinations.push_back(
            receivers[std::size_t(tile.value)].met[std::size_t(cells_met.index(x, y))]);
  }
  std::erase_if(gathers, [](const device::Gather& g) { return g.destinations.empty(); });
  return gathers;
}

std::vector<device::Gather> RehomePass::further(std::int64_t by,
                                                const std::vector<SlotId>& from_slots,
                                                int into) const {
  std::vector<device::Gather> gathers;
  for (std::int64_t t = 0; t < tables.ring(); ++t)
    gathers.push_back({{{from_slots[std::size_t(t)], {0, 1}}},
                       {passing[std::size_t(into)][std::size_t((t + by) % tables.ring())]}});
  return gathers;
}

void RehomePass::load() {
  moved = 0;
  for (std::size_t t = 0; t < homes.size(); ++t) {
    const std::byte* values = zeros.data();
    if (std::int64_t(t) < tables.from_map().tiles()) {
      if (shared != nullptr) continue;
      const Cell c = tables.from_map().cell(TileId(std::int64_t(t)));
      values = from + bucket_of(spec.from, c) * from_bytes();
    }
    engine.load(homes[t], one_row(values, from_bytes()));
  }
  for (const TileId tile : tiles)
    engine.load(receivers[std::size_t(tile.value)].table,
                one_row(tables.of_tile(tile).data(), table_bytes()));
}

// Adds a step that calls work(element, tile) with a number of the size of an element.
template <class Work>
void RehomePass::compute(Uses uses, Work work) {
  program.compute(kRehomePhase, std::move(uses), tiles, [this, work](const device::Tile& tile) {
    return element() == 2 ? work(std::uint16_t{}, tile) : work(std::uint32_t{}, tile);
  });
}

// Returns the address of the value that a table entry below reach() names.
const std::byte* RehomePass::gathered_value(const device::Tile& tile, std::uint32_t entry) const {
  const Receiver& receiver = receivers[std::size_t(tile.id().value)];
  const std::int64_t a_cell = spec.from.splits.z * tables.from_values(), cell = entry / a_cell;
  if (cell >= std::ssize(receiver.met))  // possible only if memory was damaged
    throw Error(ErrorCode::CheckFailed,
                fmt::format("self-check: a word of the re-home table of tile {} is {}; the tile "
                            "has gathered {} values",
                            tile.id().value, entry, std::ssize(receiver.met) * a_cell));
  return tile.view(receiver.met[std::size_t(cell)]).data + entry % a_cell * element();
}

// Calls put(entry, place) for each value of the tile's bucket.
template <class Element, class Put>
Cycles RehomePass::walk_table(const device::Tile& tile, Put&& put) const {
  const Receiver& receiver = receivers[std::size_t(tile.id().value)];
  const std::byte* table = tile.view(receiver.table).data;
  std::byte* to = tile.view(receiver.result).data;
  for (std::int64_t i = 0; i < tables.to_values(); ++i) {
    std::uint32_t entry = 0;
    std::memcpy(&entry, table + i * kEntryBytes, sizeof(entry));
    put(entry, to + i * std::int64_t(sizeof(Element)));
  }
  return planner::unpack_cycles(tables.to_values(), engine.machine());
}

template <class Element>
Cycles RehomePass::unpack(const device::Tile& tile) const {
  const std::byte* own = tile.view(homes[std::size_t(tile.id().value)]).data;
  return walk_table<Element>(tile, [&](std::uint32_t entry, std::byte* to) {
    const std::int64_t at = entry - tables.reach();  // position in the tile's own bucket
    if (at < 0)
      copy_value<Element>(gathered_value(tile, entry), to);
    else if (at < tables.from_values())
      copy_value<Element>(own + at * std::int64_t(sizeof(Element)), to);
    else
      std::memset(to, 0, sizeof(Element));
  });
}

template <class Element>
Cycles RehomePass::pick(const device::Tile& tile) const {
  const auto& slots = passing[1 - moved % 2];
  const std::byte* values = tile.view(slots[std::size_t(tile.id().value)]).data;
  const std::int64_t begin = tables.reach() + move().distance * tables.from_values();
  return walk_table<Element>(tile, [&](std::uint32_t entry, std::byte* to) {
    const std::int64_t at = entry - begin;
    if (at >= 0 && at < tables.from_values())
      copy_value<Element>(values + at * std::int64_t(sizeof(Element)), to);
  });
}

void RehomePass::collect() {
  const auto slot_of = [this](TileId tile) { return receivers[std::size_t(tile.value)].result; };
  collect_payloads(engine, tables.to_map(), spec.to, slot_of, to_bytes(), result.data());
}

void RehomePass::declare_alone(Executor&) {
  declare_load();
  declare();
  program.check_steps(rehome_step_order(passes()));
}

}  // namespace tessera::runtime::internal
