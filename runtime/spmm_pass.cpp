#include "tessera/runtime/spmm_pass.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/codelets/bucket_layout.hpp"
#include "tessera/codelets/cost/vector_cycles.hpp"
#include "tessera/runtime/internal/spmm_state.hpp"
#include "tessera/runtime/internal/spread.hpp"

namespace tessera::runtime {

using device::Gather;
using device::SlotKind;
using internal::BucketSlots;

SpmmPass::State::State(const PassSpec& s, internal::BoundProgram& program, device::Engine& machine,
                       const internal::PassHomes* homes_of_network)
    : spec(s),
      role(internal::role_of(s)),
      bound(program),
      engine(machine),
      shared(homes_of_network),
      map(s.parts(), TileOrder::Yzx),
      shape(internal::values_shape(s)),
      all(map.all()),
      loop(s, Served::AllOfZ),
      travelling(map, shape, loop),
      reduction(role.in_parts(s.grid.splits), s.partials_type, s.data_type()),
      kernel(codelets::find_kernel(internal::kernel_key(s)).run) {
  if (shared == nullptr) other_words = internal::OtherWords(bound, s);
}

PassForm SpmmPass::State::form() const {
  const Dims& splits = spec.grid.splits;
  return {.pass = pass(),
          .parts = {spec.groups, role.out_parts(splits), role.in_parts(splits), splits.z},
          .transposes = turns_blocks(),
          .fetches = !in_is_here() || splits.z > 1,
          .casts = spec.partials_type != spec.data_type(),
          .arranges_operands = in_is_spread(),
          .arranges_result = out_is_spread()};
}

void SpmmPass::State::prepare() {
  travelling.prepare(bound, engine, homes);
  reduction.prepare(bound, engine);
  if (sums)
    prearrange = engine.charge_gathers(prearrange_gathers());
  else
    prearrange = engine.prepare(prearrange_gathers(),
                                fetches ? fetches->prepare() : std::vector<device::Move>());
  bound.set_moves(prearrange_node, prearrange.moved);
}

void SpmmPass::State::share_sums(Executor& executor) {
  TESSERA_ASSERT(shared == nullptr && engine.mode() == device::ExchangeMode::Share);
  sums.emplace(spec, executor);
  reduction.only_charge();
}

bool SpmmPass::State::turns_blocks() const {
  const BlockShape block = spec.grid.block;
  return spec.method == codelets::Method::BlockTranspose && block.rows > 1 && block.cols > 1;
}

void SpmmPass::State::add_slots() {
  homes = shared != nullptr ? shared->buckets
                            : internal::add_home_buckets(bound, engine, map, shape, use.home);
  for (const TileId tile : all) {
    const Cell c = map.cell(tile);
    const std::int64_t in_rows = role.in_rows(spec.grid, c).size();
    const std::int64_t share = share_of(in_rows, 1, sharers(), role.out_part(c)).size();
    TileSlots slots;
    slots.in = engine.add_slot(bound.slot(use.in, tile, in_rows, row_bytes(),
                                          shared != nullptr ? SlotKind::Owned : SlotKind::Landing));
    if (shared != nullptr)
      slices.shares[std::size_t(tile.value)].slot = slots.in;
    else
      slots.in_home = in_is_here()
                          ? slots.in
                          : engine.add_slot(bound.slot(use.in_home, tile, share, row_bytes()));
    // Rows of one element, because the reduction cuts the partials at any element.
    slots.partial = engine.add_slot(
        bound.slot(use.partial, tile, role.out_rows(spec.grid, c).size() * z(),
                   bytes_of(spec.partials_type), sums ? SlotKind::Landing : SlotKind::Owned));
    add_arrived_slots(tile, slots);
    other_words.add_slot(bound, engine, tile);
    if (turns_blocks()) engine.add_slot(bound.slot(use.turned, tile, 1, shape.payload_bytes));
    tiles.push_back(std::move(slots));
  }
  travelling.add_slots(bound, engine);
  reduction.add_slots(bound, engine, columns());
  loop.add_slots(bound, engine);
}

// With `sums`, nothing arrives, and one pair of slots stands for the memory of all other buckets.
void SpmmPass::State::add_arrived_slots(TileId tile, TileSlots& slots) {
  const std::int64_t parts = spec.grid.splits.z;
  BucketSlots others;
  if (sums && parts > 1)
    others = internal::add_bucket_slots(bound, engine, tile, shape, use.arrived, parts - 1);
  for (std::int64_t k = 0; k < parts; ++k)
    slots.arrived.push_back(
        k == map.cell(tile).z ? homes[std::size_t(tile.value)]
        : sums                ? others
               : internal::add_bucket_slots(bound, engine, tile, shape, use.arrived));
}

// A column has the tiles that share a part of the result and a part of z.
std::vector<internal::ReductionColumn> SpmmPass::State::columns() const {
  std::vector<internal::ReductionColumn> result;
  for (const TileId first : all) {
    const Cell c = map.cell(first);
    if (role.in_part(c) != 0) continue;
    internal::ReductionColumn column;
    for (std::int64_t in = 0; in < role.in_parts(map.splits()); ++in) {
      const TileId tile = map.tile(role.with_in_part(c, in));
      column.tiles.push_back(tile);
      column.partials.push_back(tiles[std::size_t(tile.value)].partial);
    }
    column.elements = role.out_rows(spec.grid, c).size() * z();
    result.push_back(std::move(column));
  }
  return result;
}

std::vector<Gather> SpmmPass::State::prearrange_gathers() const {
  std::vector<Gather> gathers;
  for (const TileId first : all) {
    const Cell c = map.cell(first);
    if (in_is_here() || shared != nullptr || role.out_part(c) != 0) continue;
    Gather slice;  // each tile of the line holds a share of the slice that all of them need
    const std::int64_t rows = role.in_rows(spec.grid, c).size();
    if (in_is_spread())
      slice.senders = internal::spread_senders(
          {spec.groups, spec.grid.size.z, role.all_in_rows(spec.grid.size), spec.data_type()},
          {c.g, {c.z * z(), (c.z + 1) * z()}, role.in_rows(spec.grid, c)}, engine.machine().tiles);
    for (std::int64_t out = 0; out < sharers(); ++out) {
      const TileSlots& slots = tiles[std::size_t(map.tile(role.with_out_part(c, out)).value)];
      slice.pieces.push_back({slots.in_home, {0, share_of(rows, 1, sharers(), out).size()}});
      slice.destinations.push_back(slots.in);
    }
    gathers.push_back(std::move(slice));
  }
  if (spec.grid.splits.z > 1)
    for (const TileId tile : all) add_bucket_gathers(tile, gathers);
  return gathers;
}

// Adds the gathers that send a tile's bucket to the other tiles of its cell.
void SpmmPass::State::add_bucket_gathers(TileId tile, std::vector<Gather>& gathers) const {
  gather_to_cell(gathers, map, tile, spec.grid.splits.z, homes[std::size_t(tile.value)],
                 [&](TileId to, std::int64_t z) {
                   return tiles[std::size_t(to.value)].arrived[std::size_t(z)];
                 });
}

void SpmmPass::State::load() {
  internal::load_home_buckets(engine, map, shape, homes, image);
  loop.load(engine, image.travel_words);
  if (sums) sums->begin(image, host_in, host_out);
  for (const TileId tile : all) {
    const Cell c = map.cell(tile);
    const Range rows = role.in_rows(spec.grid, c);
    const Range share = share_of(rows.size(), 1, sharers(), role.out_part(c));
    const std::int64_t begin = role.first_in_row(spec.grid.size, c) + rows.begin;
    device::ByteRows slice = host_in.sub({begin + share.begin, begin + share.end});
    slice.data += c.z * row_bytes();
    slice.row_bytes = row_bytes();
    engine.load(tiles[std::size_t(tile.value)].in_home, slice);
  }
}

// Charges the time in which every tile arranges its run of [groups * rows][z] elements. No data
// move, because the caller's memory is read in place.
void SpmmPass::State::arrange(std::int64_t rows) {
  const Cycles cycles = internal::arrange_cycles(spec, rows, engine.machine());
  engine.compute(Phase::Arrange, all, [&](const device::Tile&) { return cycles; });
}

// Each tile transposes the blocks of its own bucket before the buckets travel. This charges the
// cycles only, because our kernels read the blocks in place.
void SpmmPass::State::transpose() {
  engine.compute(Phase::Transpose, all, [&](const device::Tile&) {
    return codelets::transpose_blocks_cycles(spec.grid.blocks, spec.grid.block, spec.data_type(),
                                             engine.machine().workers);
  });
}

Cycles SpmmPass::State::visit(const device::Tile& tile,
                              std::span<const BucketSlots> buckets) const {
  const Cell c = map.cell(tile.id());
  const TileSlots& slots = tiles[std::size_t(tile.id().value)];
  codelets::KernelArgs args;
  args.sub_group = codelets::sub_group_id(c.x, c.y, spec.grid.splits.y);
  args.block = spec.grid.block;
  args.in = internal::operand(tile.view(slots.in), bytes_of(spec.data_type()));
  args.out = {tile.view(slots.partial).data, role.out_rows(spec.grid, c).size(), z(), z()};
  internal::VisitedWords words(buckets.size());
  const internal::CheckedKernel run{engine, spec, kernel};
  for (const BucketSlots& bucket : buckets) {
    args.meta = tile.view(bucket.meta).data;
    args.values = tile.view(bucket.payload).data;
    run(tile.id(), args,
        {shape.meta_bytes / spec.word_bytes(), shape.payload_bytes / bytes_of(spec.data_type())});
    words.add(args.meta);
  }
  return internal::visit_cycles(spec, engine.machine(), words.all(), args.sub_group);
}

void SpmmPass::State::distribute() {
  if (sums) sums->count_cycles(engine.machine());
  engine.compute(Phase::Distribute, all, [&](const device::Tile& tile) {
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
  });
}

void SpmmPass::State::visit_arrived() {
  engine.compute(Phase::Propagate, all, [&](const device::Tile& tile) {
    const BucketSlots arrived = travelling.current(tile.id());
    if (!sums) return visit(tile, {&arrived, 1});
    const Cell c = map.cell(tile.id());
    const void* const words = tile.view(arrived.meta).data;
    sums->note_visit(tile.id(), words, tile.view(arrived.payload).data);
    return internal::visit_cycles(spec, engine.machine(), {&words, 1},
                                  codelets::sub_group_id(c.x, c.y, spec.grid.splits.y));
  });
}

void SpmmPass::State::collect() {
  if (sums) return sums->run();
  const std::int64_t element = bytes_of(spec.data_type());
  for (const internal::ReducedShare& share : reduction.shares()) {
    const Cell c = map.cell(share.tile);
    const std::int64_t begin =
        role.first_out_row(spec.grid.size, c) + role.out_rows(spec.grid, c).begin;
    const std::byte* from = engine.view(share.slot).data;
    for (std::int64_t e = share.elements.begin; e < share.elements.end;) {
      const std::int64_t row = e / z(), column = e % z();
      const std::int64_t run = std::min(z() - column, share.elements.end - e);
      std::byte* to =
          host_out.data + (begin + row) * host_out.stride + (c.z * z() + column) * element;
      std::memcpy(to, from, std::size_t(run * element));
      from += run * element;
      e += run;
    }
  }
}

SpmmPass::Own::Own(const PassSpec& spec, const device::Machine& machine, device::ExchangeMode mode,
                   Executor& executor)
    : bound(to_string(internal::role_of(spec).forward ? Pass::Fwd : Pass::GradA)),
      engine(machine, mode, executor),
      state(spec, bound, engine) {
  if (mode == device::ExchangeMode::Share) state.share_sums(executor);
  state.declare();
  bound.check_steps(state.form());
  bound.finish();
  state.add_slots();
}

void SpmmPass::Own::seal() {
  bound.seal(engine);
  state.prepare();
}

SpmmPass::SpmmPass(const PassSpec& spec, const device::Machine& machine, device::ExchangeMode mode,
                   Executor& executor)
    : own_(std::make_unique<Own>(spec, machine, mode, executor)) {
  own_->seal();
}
SpmmPass::~SpmmPass() = default;
SpmmPass::SpmmPass(SpmmPass&&) noexcept = default;

const device::Damage& SpmmPass::damage() const { return own_->bound.damage(); }
Bytes SpmmPass::high_water() const { return own_->engine.high_water(); }
device::MemoryUse SpmmPass::memory() const { return own_->bound.memory(own_->engine); }
const Program& SpmmPass::program() const { return own_->bound.program(); }

device::MemoryUse SpmmPass::memory_of(const PassSpec& spec, const device::Machine& machine) {
  const auto executor = make_executor(ExecutorKind::Threads, 1);
  const Own own(spec, machine, device::ExchangeMode::Share, *executor);
  return own.bound.memory(own.engine);
}

bool SpmmPass::run(const BucketImage& image, device::ByteRows in, device::ByteRows out,
                   const PassOptions& options, device::Ledger& ledger) {
  State& state = own_->state;
  TESSERA_ASSERT(image.fits(state.spec));
  state.image = image;
  state.host_in = in;
  state.host_out = out;
  const bool finished = own_->bound.run(own_->engine, options);
  ledger = own_->engine.ledger();
  return finished;
}

}  // namespace tessera::runtime
