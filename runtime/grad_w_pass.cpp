#include "tessera/runtime/internal/grad_w_pass.hpp"

#include <algorithm>
#include <cstring>

#include "tessera/base/error.hpp"
#include "tessera/codelets/bucket_layout.hpp"
#include "tessera/codelets/cost/vector_cycles.hpp"
#include "tessera/runtime/internal/lines_of_tiles.hpp"
#include "tessera/runtime/internal/spread.hpp"
#include "tessera/runtime/internal/visit.hpp"

namespace tessera::runtime::internal {

using device::Gather;
using device::SlotKind;

GradWPass::GradWPass(const PassSpec& s, GradWExchange exchange, TileProgram& of_pass,
                     const PassHomes* homes_of_network)
    : spec(s),
      program(of_pass),
      engine(of_pass.engine()),
      shared(homes_of_network),
      home_map(s.parts(), TileOrder::Yzx),
      map(s.parts(), exchange == GradWExchange::Inputs ? TileOrder::Xyz : TileOrder::Yzx),
      shape{false, s.grid.meta_words * s.word_bytes(), values() * bytes_of(s.partials_type)},
      all(map.all()),
      loop(s, exchange == GradWExchange::Inputs ? Served::NoZ : Served::OwnZ),
      kernel(codelets::find_kernel(kernel_key(s)).run),
      exchange_(exchange) {}

PassForm GradWPass::form() const {
  const Dims& splits = spec.grid.splits;
  return {.pass = Pass::GradW,
          .parts = spec.parts(),
          .fetches = spread() || splits.x * splits.y > 1,
          .rearranges = rearranges(),
          .buckets_travel = exchange_ == GradWExchange::Buckets,
          .casts = casts(),
          .arranges_operands = spread()};
}

bool GradWPass::cells_move() const {
  return std::any_of(all.begin(), all.end(),
                     [&](TileId tile) { return home_map.cell(tile) != map.cell(tile); });
}

void GradWPass::add_operand_slots(TileId tile, TileSlots& slots) {
  // Slots have the capacity of the largest slice, because travelling operands change tiles.
  const std::int64_t q_rows = spec.grid.x_range(0).size(), s_rows = spec.grid.y_range(0).size();
  const auto add = [&](BufferId buffer, std::int64_t rows) {
    return program.add_slot(buffer, tile, rows, row_bytes(), operand_kind());
  };
  slots.q = add(use.q, q_rows);
  slots.s = add(use.s, s_rows);
  if (shared == nullptr) add_operand_homes(tile, slots);
  if (!rearranges()) return;
  add(use.q_blocks, q_rows);
  add(use.s_blocks, s_rows);
}

void GradWPass::add_operand_homes(TileId tile, TileSlots& slots) {
  const Dims& splits = spec.grid.splits;
  const Cell home = home_map.cell(tile);
  const auto add = [&](BufferId buffer, std::int64_t rows) {
    return program.add_slot(buffer, tile, rows, row_bytes());
  };
  const bool at_home = home == map.cell(tile) && !spread();
  slots.q_home =
      at_home && splits.y == 1
          ? slots.q
          : add(use.q_home, share_of(spec.grid.x_range(home.x).size(), 1, splits.y, home.y).size());
  slots.s_home =
      at_home && splits.x == 1
          ? slots.s
          : add(use.s_home, share_of(spec.grid.y_range(home.y).size(), 1, splits.x, home.x).size());
}

void GradWPass::add_tiles() {
  tiles.resize(all.size());
  for (const TileId tile : all) {
    TileSlots& slots = slots_of(tile);
    add_operand_slots(tile, slots);
    meta_homes.push_back(shared != nullptr
                             ? shared->buckets[std::size_t(tile.value)].meta
                             : program.add_slot(use.words, tile, 1, shape.meta_bytes));
    slots.meta = home_map.cell(tile) == map.cell(tile)
                     ? meta_homes.back()
                     : program.add_slot(use.words_here, tile, 1, shape.meta_bytes);
    slots.sums = program.add_slot(use.sums, tile, 1, shape.payload_bytes, SlotKind::Owned);
    slots.result = casts()
                       ? program.add_slot(use.result, tile, 1,
                                          values() * bytes_of(spec.data_type()), SlotKind::Owned)
                       : slots.sums;
  }
}

// Returns the number of tiles that hold a part of a cell's slice, if operands are spread.
std::int64_t GradWPass::senders_of(Cell c, bool q_side) const {
  if (!spread()) return 0;
  const Dims& size = spec.grid.size;
  return spread_senders({spec.groups, size.z, q_side ? size.x : size.y, spec.data_type()},
                        {c.g, {c.z * z(), (c.z + 1) * z()}, rows_of(c, q_side)},
                        engine.machine().tiles);
}

// Adds the gathers that bring a slice of an operand to all tiles that need it: dQ to the tiles of
// one (x, z), S to those of one (y, z). Each of these tiles holds a share of the slice at home.
void GradWPass::add_operand_gathers(std::vector<Gather>& gathers, bool q_side) const {
  const Dims& splits = spec.grid.splits;
  gather_slices(
      gathers, home_map, q_side ? &Cell::y : &Cell::x, q_side ? splits.y : splits.x,
      [&](Cell c) { return rows_of(c, q_side).size(); },
      [&](Cell c) {
        const TileSlots &home = slots_of(home_map.tile(c)), &here = slots_of(map.tile(c));
        return q_side ? SliceSlots{home.q_home, here.q} : SliceSlots{home.s_home, here.s};
      },
      [&](Cell c) { return senders_of(c, q_side); });
}

std::vector<Gather> GradWPass::prearrange_gathers() const {
  std::vector<Gather> gathers;
  if (shared == nullptr) {
    add_operand_gathers(gathers, true);
    add_operand_gathers(gathers, false);
  }
  for (const TileId home : home_map.all()) {
    const TileId here = map.tile(home_map.cell(home));
    const device::SlotId from = meta_homes[std::size_t(home.value)];
    if (slots_of(here).meta != from) gathers.push_back({{{from, {0, 1}}}, {slots_of(here).meta}});
  }
  return gathers;
}

void GradWPass::load() {
  const Dims &splits = spec.grid.splits, &size = spec.grid.size;
  loop.load(engine, image.travel_words);
  for (const TileId tile : all) {
    const Cell c = home_map.cell(tile);
    const auto load_share = [&](device::SlotId slot, const device::ByteRows& from, Range rows,
                                std::int64_t first, Range share) {
      const std::int64_t begin = first + rows.begin;
      engine.load(slot, from.sub({begin + share.begin, begin + share.end},
                                 {c.z * row_bytes(), (c.z + 1) * row_bytes()}));
    };
    const Range x = spec.grid.x_range(c.x), y = spec.grid.y_range(c.y);
    load_share(slots_of(tile).q_home, operands.q_grad, x, c.g * size.x,
               share_of(x.size(), 1, splits.y, c.y));
    load_share(slots_of(tile).s_home, operands.s, y, c.g * size.y,
               share_of(y.size(), 1, splits.x, c.x));
    const std::int64_t bucket = spec.grid.bucket_index(c.x, c.y, c.z);
    engine.load(meta_homes[std::size_t(tile.value)],
                one_row(image.groups[std::size_t(c.g)].meta_words(bucket), shape.meta_bytes));
  }
}

// Charges the cycles in which the machine brings both operands into block order. No data move,
// because our kernels read the operands in place.
Cycles GradWPass::rearrange(const device::Tile& tile) const {
  const BlockShape block = spec.grid.block;
  const Cell c = map.cell(tile.id());
  const auto side = [&](Range rows, std::int64_t length) {
    return codelets::rearrange_cycles(rows.size() / length, length, z(), spec.data_type(),
                                      engine.machine().workers);
  };
  return side(spec.grid.x_range(c.x), block.rows) + side(spec.grid.y_range(c.y), block.cols);
}

Cycles GradWPass::clear_sums(const device::Tile& tile) const {
  const device::ByteRows sums = tile.view(slots_of(tile.id()).sums);
  std::memset(sums.data, 0, std::size_t(sums.bytes()));
  return codelets::zero_cycles(sums.bytes(), engine.machine().workers);
}

Cycles GradWPass::visit(const device::Tile& tile, const Visit& v) const {
  const std::int64_t element = bytes_of(spec.data_type());
  codelets::KernelArgs args;
  args.sub_group = codelets::sub_group_id(v.of.x, v.of.y, spec.grid.splits.y);
  args.block = spec.grid.block;
  args.meta = tile.view(v.meta).data;
  args.gradients = tile.view(v.sums).data;
  args.in = operand(tile.view(v.q), element);
  args.in_s = operand(tile.view(v.s), element);
  CheckedKernel{engine, spec, kernel}(tile.id(), args,
                                      {shape.meta_bytes / spec.word_bytes(), values()});
  return visit_cycles(spec, engine.machine(), {&args.meta, 1}, args.sub_group);
}

Cycles GradWPass::cast(const device::Tile& tile) const {
  TESSERA_ASSERT(spec.partials_type == DataType::Float);
  const TileSlots& slots = slots_of(tile.id());
  const auto* from = reinterpret_cast<const float*>(tile.view(slots.sums).data);
  std::byte* result = tile.view(slots.result).data;
  with_type(spec.data_type(), [&]<class T>(T) {
    auto* to = reinterpret_cast<T*>(result);
    for (std::int64_t i = 0; i < values(); ++i) to[i] = T(from[i]);
  });
  return codelets::cast_cycles(values(), spec.partials_type, spec.data_type(),
                               engine.machine().workers);
}

void GradWPass::collect() const {
  const std::int64_t bytes = values() * bytes_of(spec.data_type());
  if (bytes == 0) return;
  for (const TileId tile : all) {
    const Cell c = map.cell(tile);
    const std::int64_t bucket = c.g * spec.grid.buckets() + spec.grid.bucket_index(c.x, c.y, c.z);
    std::memcpy(operands.gradients + bucket * bytes, engine.view(slots_of(tile).result).data,
                std::size_t(bytes));
  }
}

std::unique_ptr<GradWPass> GradWPass::make(const PassSpec& spec, GradWExchange exchange,
                                           TileProgram& program, const PassHomes* shared) {
  return exchange == GradWExchange::Inputs ? make_grad_w_inputs(spec, program, shared)
                                           : make_grad_w_buckets(spec, program, shared);
}

void GradWPass::declare_alone(Executor&) {
  declare();
  program.check_steps(form());
}

void GradWPass::start(const BucketImage& of_run, const Operands& of_pass) {
  TESSERA_ASSERT(of_run.fits(spec));
  image = of_run;
  operands = of_pass;
  begin();
}

}  // namespace tessera::runtime::internal
