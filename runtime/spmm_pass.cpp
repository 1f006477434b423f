#include "tessera/runtime/internal/spmm_pass.hpp"

#include <cstring>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/codelets/bucket_layout.hpp"
#include "tessera/codelets/cost/vector_cycles.hpp"
#include "tessera/runtime/internal/lines_of_tiles.hpp"

namespace tessera::runtime::internal {

using device::Gather;
using device::SlotKind;

SpmmPass::SpmmPass(const PassSpec& s, TileProgram& of_state, const PassHomes& homes_of_network)
    : spec(s),
      role(role_of(s)),
      program(of_state),
      engine(of_state.engine()),
      shared(homes_of_network),
      in(s, pass(), role.forward ? SlicedOperand::Name::S : SlicedOperand::Name::Dq, TileOrder::Yzx,
         of_state),
      fetches(of_state, s.data_type()),
      map(s.parts(), TileOrder::Yzx),
      shape(values_shape(s)),
      all(map.all()),
      loop(s, Served::AllOfZ),
      travelling(map, shape, loop),
      reduction(role.in_parts(s.grid.splits), s.partials_type, s.data_type()),
      kernel(codelets::find_kernel(kernel_key(s)).run) {}

PassForm SpmmPass::form() const {
  const Dims& splits = spec.grid.splits;
  return {.pass = pass(),
          .parts = {spec.groups, role.out_parts(splits), role.in_parts(splits), splits.z},
          .transposes = turns_blocks(),
          .fetches = in_is_spread() || in.sharers() > 1 || splits.z > 1,
          .casts = spec.partials_type != spec.data_type(),
          .arranges_operands = in_is_spread(),
          .arranges_result = out_is_spread()};
}

void SpmmPass::share_sums(Executor& executor) {
  TESSERA_ASSERT(shared.is_host && engine.mode() == device::ExchangeMode::Share);
  sums.emplace(spec, executor);
  reduction.only_charge();
}

bool SpmmPass::turns_blocks() const {
  const BlockShape block = spec.grid.block;
  return spec.method == codelets::Method::BlockTranspose && block.rows > 1 && block.cols > 1;
}

void SpmmPass::add_slots() {
  for (const TileId tile : all) {
    const Cell c = map.cell(tile);
    TileSlots slots{.in = in.add_slot(tile, role.in_rows(spec.grid, c).size())};
    in.add_home_slot(tile);
    // Rows of one element, because the reduction cuts the partials at any element.
    slots.partial =
        program.add_slot(use.partial, tile, role.out_rows(spec.grid, c).size() * z(),
                         bytes_of(spec.partials_type), sums ? SlotKind::Landing : SlotKind::Owned);
    add_arrived_slots(tile, slots);
    if (turns_blocks()) program.add_slot(use.turned, tile, 1, shape.payload_bytes);
    tiles.push_back(std::move(slots));
  }
}

// With `sums`, nothing arrives, and one pair of slots stands for the memory of all other buckets.
void SpmmPass::add_arrived_slots(TileId tile, TileSlots& slots) {
  const std::int64_t parts = spec.grid.splits.z;
  BucketSlots others;
  if (sums && parts > 1) others = add_bucket_slots(program, tile, shape, use.arrived, parts - 1);
  for (std::int64_t k = 0; k < parts; ++k)
    slots.arrived.push_back(k == map.cell(tile).z ? homes.on(tile)
                            : sums                ? others
                                   : add_bucket_slots(program, tile, shape, use.arrived));
}

// A column has the tiles that share a part of the result and a part of z.
std::vector<ReductionColumn> SpmmPass::columns() const {
  return columns_along(
      map, role.in_axis(), role.in_parts(map.splits()),
      [this](Cell c) { return role.out_rows(spec.grid, c).size() * z(); },
      [this](TileId tile) { return tiles[std::size_t(tile.value)].partial; });
}

// Adds the gathers that send a tile's bucket to the other tiles of its cell.
void SpmmPass::add_bucket_gathers(TileId tile, std::vector<Gather>& gathers) const {
  gather_to_cell(gathers, map, tile, spec.grid.splits.z, homes.on(tile),
                 [&](TileId to, std::int64_t z) {
                   return tiles[std::size_t(to.value)].arrived[std::size_t(z)];
                 });
}

void SpmmPass::load() {
  load_home_buckets(engine, map, shape, homes, image);
  loop.load(engine, image.travel_words);
  if (sums) sums->begin(image, host_in, host_out);
  in.load(host_in);
}

Cycles SpmmPass::visit(const device::Tile& tile, std::span<const BucketSlots> buckets) const {
  const Cell c = map.cell(tile.id());
  const TileSlots& slots = tiles[std::size_t(tile.id().value)];
  codelets::KernelArgs args;
  args.sub_group = codelets::sub_group_id(c.x, c.y, spec.grid.splits.y);
  args.block = spec.grid.block;
  args.in = operand(tile.view(slots.in), bytes_of(spec.data_type()));
  args.out = {tile.view(slots.partial).data, role.out_rows(spec.grid, c).size(), z(), z()};
  VisitedWords words(buckets.size());
  const CheckedKernel run{engine, spec, kernel};
  for (const BucketSlots& bucket : buckets) {
    args.meta = tile.view(bucket.meta).data;
    args.values = tile.view(bucket.payload).data;
    run(tile.id(), args,
        {shape.meta_bytes / spec.word_bytes(), shape.payload_bytes / bytes_of(spec.data_type())});
    words.add(args.meta);
  }
  return visit_cycles(spec, engine.machine(), words.all(), args.sub_group);
}

Cycles SpmmPass::distribute(const device::Tile& tile) const {
  const TileSlots& slots = tiles[std::size_t(tile.id().value)];
  if (sums) {
    const Cell c = map.cell(tile.id());
    const std::int64_t bytes =
        role.out_rows(spec.grid, c).size() * z() * bytes_of(spec.partials_type);
    return codelets::zero_cycles(bytes, engine.machine().workers) + sums->cycles(c);
  }
  const device::ByteRows partial = tile.view(slots.partial);
  std::memset(partial.data, 0, std::size_t(partial.bytes()));
  return codelets::zero_cycles(partial.bytes(), engine.machine().workers) +
         visit(tile, slots.arrived);
}

Cycles SpmmPass::visit_arrived(const device::Tile& tile) {
  const BucketSlots arrived = travelling.current(tile.id());
  if (!sums) return visit(tile, {&arrived, 1});
  const Cell c = map.cell(tile.id());
  const void* const words = tile.view(arrived.meta).data;
  sums->note_visit(tile.id(), words, tile.view(arrived.payload).data);
  return visit_cycles(spec, engine.machine(), {&words, 1},
                      codelets::sub_group_id(c.x, c.y, spec.grid.splits.y));
}

void SpmmPass::collect() {
  if (sums) return sums->run();
  collect_rows(engine, result, host_out, bytes_of(spec.data_type()));
}

void SpmmPass::declare_alone(Executor& executor) {
  if (engine.mode() == device::ExchangeMode::Share) share_sums(executor);
  declare();
  program.check_steps(form());
}

void SpmmPass::start(const BucketImage& of_run, device::ByteRows of_in, device::ByteRows of_out) {
  TESSERA_ASSERT(of_run.fits(spec));
  image = of_run;
  host_in = of_in;
  host_out = of_out;
}

}  // namespace tessera::runtime::internal
