#include "tessera/runtime/internal/grad_w_pass.hpp"

#include <algorithm>
#include <cstring>

#include "tessera/base/error.hpp"
#include "tessera/codelets/bucket_layout.hpp"
#include "tessera/codelets/cost/vector_cycles.hpp"
#include "tessera/runtime/internal/visit.hpp"

namespace tessera::runtime::internal {

using device::Gather;
using device::SlotKind;

namespace {

TileOrder order_of(GradWExchange exchange) {
  return exchange == GradWExchange::Inputs ? TileOrder::Xyz : TileOrder::Yzx;
}

}  // namespace

GradWPass::GradWPass(const PassSpec& s, GradWExchange exchange, TileProgram& of_pass,
                     const PassHomes& homes_of_network)
    : spec(s),
      program(of_pass),
      engine(of_pass.engine()),
      shared(homes_of_network),
      q_in(s, Pass::GradW, SlicedOperand::Name::Dq, order_of(exchange), of_pass),
      s_in(s, Pass::GradW, SlicedOperand::Name::S, order_of(exchange), of_pass),
      fetches(of_pass, s.data_type()),
      home_map(s.parts(), TileOrder::Yzx),
      map(s.parts(), order_of(exchange)),
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

// Slots have the capacity of the largest slice, because travelling operands change tiles.
void GradWPass::add_operand_slots(TileId tile, TileSlots& slots) {
  const std::int64_t q_rows = spec.grid.x_range(0).size(), s_rows = spec.grid.y_range(0).size();
  slots.q = q_in.add_slot(tile, q_rows);
  slots.s = s_in.add_slot(tile, s_rows);
  q_in.add_home_slot(tile);
  s_in.add_home_slot(tile);
  if (!rearranges()) return;
  add_operand_slot(use.q_blocks, tile, q_rows);
  add_operand_slot(use.s_blocks, tile, s_rows);
}

void GradWPass::add_tiles() {
  tiles.resize(all.size());
  for (const TileId tile : all) {
    TileSlots& slots = slots_of(tile);
    add_operand_slots(tile, slots);
    if (shared.is_host)
      homes.slots.push_back({program.add_slot(homes.use.words, tile, 1, shape.meta_bytes), {}});
    slots.meta = home_map.cell(tile) == map.cell(tile)
                     ? homes.on(tile).meta
                     : program.add_slot(use.words_here, tile, 1, shape.meta_bytes);
    slots.sums = program.add_slot(use.sums, tile, 1, shape.payload_bytes, SlotKind::Owned);
    slots.result = casts()
                       ? program.add_slot(use.result, tile, 1,
                                          values() * bytes_of(spec.data_type()), SlotKind::Owned)
                       : slots.sums;
  }
}

std::vector<Gather> GradWPass::prearrange_gathers() {
  std::vector<Gather> gathers = fetches.take_gathers();
  for (const TileId home : home_map.all()) {
    const TileId here = map.tile(home_map.cell(home));
    const device::SlotId from = homes.on(home).meta;
    if (slots_of(here).meta != from) gathers.push_back({{{from, {0, 1}}}, {slots_of(here).meta}});
  }
  return gathers;
}

void GradWPass::load() {
  loop.load(engine, image.travel_words);
  q_in.load(operands.q_grad);
  s_in.load(operands.s);
  for (const TileId tile : all)
    engine.load(homes.on(tile).meta, home_words(image.groups, home_map.cell(tile), shape));
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
  collect_payloads(
      engine, map, spec.grid, [this](TileId tile) { return slots_of(tile).result; },
      values() * bytes_of(spec.data_type()), operands.gradients);
}

std::unique_ptr<GradWPass> GradWPass::make(const PassSpec& spec, GradWExchange exchange,
                                           TileProgram& program, const PassHomes& shared) {
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
