#include "tessera/runtime/dense_pass.hpp"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/codelets/bucket_layout.hpp"
#include "tessera/codelets/cost/vector_cycles.hpp"
#include "tessera/runtime/internal/dense_role.hpp"
#include "tessera/runtime/internal/home_buckets.hpp"
#include "tessera/runtime/internal/reduce.hpp"
#include "tessera/runtime/internal/travelling_buckets.hpp"
#include "tessera/runtime/internal/visit.hpp"

namespace tessera::runtime {

using device::Gather;
using device::SlotId;
using device::SlotKind;
using device::SlotSpec;
using internal::BucketSlots;

namespace {

enum Phase { kPrearrange, kDistribute, kPropagate, kReduce };

// The slots of one tile besides its travelling buckets.
struct TileSlots {
  SlotId in_home, in, partial;
  std::vector<BucketSlots> arrived;  // buckets of the own cell by z; the own one is the home bucket
};

}  // namespace

struct DensePass::State {
  PassSpec spec;
  OperandHomes operand_homes;
  internal::DenseRole role;
  device::Engine engine;
  TileMap map;
  internal::BucketShape shape;
  std::vector<TileId> all;
  std::vector<BucketSlots> homes;
  std::vector<TileSlots> tiles;
  internal::TravellingBuckets travelling;
  internal::Reduction reduction;
  device::Exchange prearrange;
  codelets::Kernel kernel;

  State(const PassSpec& s, const device::Machine& machine, device::ExchangeMode mode,
        Executor& executor, OperandHomes operands)
      : spec(s),
        operand_homes(operands),
        role{s.method == codelets::Method::ElementFwd || s.method == codelets::Method::BlockFwd},
        engine(machine, mode, executor),
        map(s.parts(), TileOrder::Yzx),
        shape(internal::values_shape(s)),
        all(map.all()),
        homes(internal::add_home_buckets(engine, map, shape, {kPrearrange, kReduce})),
        tiles(add_tiles()),
        travelling(engine, map, shape, {kPropagate, kPropagate}),
        reduction(engine, columns(), spec.partials_type, spec.data_type(), {kReduce, kReduce}),
        kernel(codelets::find_kernel(internal::kernel_key(s)).run) {
    engine.seal();
    travelling.prepare(engine);
    reduction.prepare(engine);
    prearrange = engine.prepare(prearrange_gathers());
  }

  std::int64_t z() const { return spec.grid.z_per_tile(); }
  std::int64_t row_bytes() const { return z() * bytes_of(spec.data_type()); }
  std::int64_t sub_group(Cell c) const {
    return codelets::sub_group_id(c.x, c.y, spec.grid.splits.y);
  }

  std::vector<TileSlots> add_tiles();
  std::vector<internal::ReductionColumn> columns() const;
  // A tile alone takes its slice, and holds it.
  bool in_is_here() const {
    return operand_homes == OperandHomes::Sharers && role.out_parts(spec.grid.splits) == 1;
  }
  std::int64_t linear_senders(Range rows, Cell c) const;
  std::vector<Gather> prearrange_gathers() const;

  void load(const BucketImage& image, device::ByteRows in);
  bool turns_blocks() const;
  void transpose();
  void distribute();
  void propagate(const partitioner::Travel& travel);
  Cycles visit(const device::Tile& tile, std::span<const BucketSlots> buckets) const;
  void collect(device::ByteRows out) const;
};

std::vector<TileSlots> DensePass::State::add_tiles() {
  std::vector<TileSlots> result;
  for (const TileId tile : all) {
    const Cell c = map.cell(tile);
    const std::int64_t in_rows = role.in_rows(spec.grid, c).size();
    const std::int64_t sharers = role.out_parts(spec.grid.splits);
    const std::int64_t share = share_of(in_rows, 1, sharers, role.out_part(c)).size();
    TileSlots slots;
    slots.in = engine.add_slot(
        {tile, "operand", in_rows, row_bytes(), SlotKind::Landing, kPrearrange, kPropagate});
    slots.in_home = in_is_here() ? slots.in
                                 : engine.add_slot({tile, "operand share", share, row_bytes(),
                                                    SlotKind::Landing, kPrearrange, kPrearrange});
    // One long row of elements: the reduction cuts it anywhere.
    slots.partial =
        engine.add_slot({tile, "partial sums", role.out_rows(spec.grid, c).size() * z(),
                         bytes_of(spec.partials_type), SlotKind::Owned, kDistribute, kReduce});
    for (std::int64_t k = 0; k < spec.grid.splits.z; ++k)
      slots.arrived.push_back(
          k == c.z ? homes[std::size_t(tile.value)]
                   : internal::add_bucket_slots(engine, tile, shape, {kPrearrange, kDistribute}));
    internal::reserve_other_words(engine, spec, tile, {kPrearrange, kReduce});
    if (turns_blocks())
      engine.add_slot({tile, "turned values", 1, shape.payload_bytes, SlotKind::Landing,
                       kPrearrange, kPropagate});
    result.push_back(std::move(slots));
  }
  return result;
}

// Tiles that share a part of the result and a z add their partials up.
std::vector<internal::ReductionColumn> DensePass::State::columns() const {
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

// The operand as [group][z][rows], in equal runs on all tiles: how many hold a part of the slice.
std::int64_t DensePass::State::linear_senders(Range rows, Cell c) const {
  const std::int64_t all_rows = role.all_in_rows(spec.grid.size);
  const std::int64_t elements = spec.groups * spec.grid.size.z * all_rows;
  constexpr std::int64_t kLeastBytes = 128;  // PopSparse's mapInput
  const std::int64_t run = std::max(ceil_div(elements, engine.machine().tiles),
                                    kLeastBytes / bytes_of(spec.data_type()));
  std::int64_t senders = 0, counted = -1;  // the last tile counted
  for (std::int64_t k = c.z * z(); k < (c.z + 1) * z(); ++k) {
    const std::int64_t begin = (c.g * spec.grid.size.z + k) * all_rows + rows.begin;
    const std::int64_t first = std::max(begin / run, counted + 1);
    const std::int64_t last = (begin + rows.size() - 1) / run;
    senders += last - first + 1;
    counted = last;
  }
  return senders;
}

std::vector<Gather> DensePass::State::prearrange_gathers() const {
  const Dims& splits = spec.grid.splits;
  const std::int64_t sharers = role.out_parts(splits);
  std::vector<Gather> gathers;
  for (const TileId first : all) {
    const Cell c = map.cell(first);
    if (in_is_here() || role.out_part(c) != 0) continue;
    Gather slice;  // every tile of the line holds a share of the slice that all of them need
    const std::int64_t rows = role.in_rows(spec.grid, c).size();
    if (operand_homes == OperandHomes::Linear)
      slice.senders = linear_senders(role.in_rows(spec.grid, c), c);
    for (std::int64_t out = 0; out < sharers; ++out) {
      const TileSlots& slots = tiles[std::size_t(map.tile(role.with_out_part(c, out)).value)];
      slice.pieces.push_back({slots.in_home, {0, share_of(rows, 1, sharers, out).size()}});
      slice.destinations.push_back(slots.in);
    }
    gathers.push_back(std::move(slice));
  }
  for (const TileId tile : all) {  // every bucket to the other tiles of its cell
    const Cell c = map.cell(tile);
    const BucketSlots home = homes[std::size_t(tile.value)];
    Gather meta{{{home.meta, {0, 1}}}, {}}, payload{{{home.payload, {0, 1}}}, {}};
    for (std::int64_t k = 0; k < splits.z; ++k) {
      if (k == c.z) continue;
      const TileId other = map.tile({c.x, c.y, k, c.g});
      const BucketSlots to = tiles[std::size_t(other.value)].arrived[std::size_t(c.z)];
      meta.destinations.push_back(to.meta);
      payload.destinations.push_back(to.payload);
    }
    if (splits.z == 1) continue;
    gathers.push_back(std::move(meta));
    gathers.push_back(std::move(payload));
  }
  return gathers;
}

void DensePass::State::load(const BucketImage& image, device::ByteRows in) {
  internal::load_home_buckets(engine, map, shape, homes, image);
  for (const TileId tile : all) {
    const Cell c = map.cell(tile);
    const Range rows = role.in_rows(spec.grid, c);
    const Range share =
        share_of(rows.size(), 1, role.out_parts(spec.grid.splits), role.out_part(c));
    const std::int64_t begin = role.first_in_row(spec.grid.size, c) + rows.begin;
    device::ByteRows slice = in.sub({begin + share.begin, begin + share.end});
    slice.data += c.z * row_bytes();
    slice.row_bytes = row_bytes();
    engine.load(tiles[std::size_t(tile.value)].in_home, slice);
  }
}

bool DensePass::State::turns_blocks() const {
  const BlockShape block = spec.grid.block;
  return spec.method == codelets::Method::BlockTranspose && block.rows > 1 && block.cols > 1;
}

// The machine turns the blocks of its own bucket over before they travel; our kernels read them
// transposed where they lie, so only cycles and memory are charged.
void DensePass::State::transpose() {
  if (!turns_blocks()) return;
  engine.compute("transpose", all, [&](const device::Tile&) {
    return codelets::transpose_blocks_cycles(spec.grid.blocks, spec.grid.block, spec.data_type(),
                                             engine.machine().workers);
  });
}

Cycles DensePass::State::visit(const device::Tile& tile,
                               std::span<const BucketSlots> buckets) const {
  const Cell c = map.cell(tile.id());
  const TileSlots& slots = tiles[std::size_t(tile.id().value)];
  codelets::KernelArgs args;
  args.sub_group = sub_group(c);
  args.block = spec.grid.block;
  args.in = internal::operand(tile.view(slots.in), bytes_of(spec.data_type()));
  args.out = {tile.view(slots.partial).data, role.out_rows(spec.grid, c).size(), z(), z()};
  std::vector<const void*> words;
  for (const BucketSlots& bucket : buckets) {
    args.meta = tile.view(bucket.meta).data;
    args.values = tile.view(bucket.payload).data;
    kernel(args);
    words.push_back(args.meta);
  }
  return internal::visit_cycles(spec, engine.machine(), words, args.sub_group);
}

void DensePass::State::distribute() {
  engine.compute("distribute", all, [&](const device::Tile& tile) {
    const TileSlots& slots = tiles[std::size_t(tile.id().value)];
    const device::ByteRows partial = tile.view(slots.partial);
    std::memset(partial.data, 0, std::size_t(partial.bytes()));
    return codelets::zero_cycles(partial.bytes(), engine.machine().workers) +
           visit(tile, slots.arrived);
  });
}

void DensePass::State::propagate(const partitioner::Travel& travel) {
  constexpr const char* kName = "propagate";
  const auto steps = propagation_steps(travel, spec.grid.splits, Served::AllOfZ);
  travelling.run(engine, kName, homes, steps, [&] {
    engine.compute(kName, all, [&](const device::Tile& tile) {
      const BucketSlots arrived = travelling.current(tile.id());
      return visit(tile, {&arrived, 1});
    });
  });
}

void DensePass::State::collect(device::ByteRows out) const {
  const std::int64_t element = bytes_of(spec.data_type());
  for (const internal::ReducedShare& share : reduction.shares()) {
    const Cell c = map.cell(share.tile);
    const std::int64_t begin =
        role.first_out_row(spec.grid.size, c) + role.out_rows(spec.grid, c).begin;
    const std::byte* from = engine.view(share.slot).data;
    for (std::int64_t e = share.elements.begin; e < share.elements.end;) {
      const std::int64_t row = e / z(), column = e % z();
      const std::int64_t run = std::min(z() - column, share.elements.end - e);
      std::byte* to = out.data + (begin + row) * out.stride + (c.z * z() + column) * element;
      std::memcpy(to, from, std::size_t(run * element));
      from += run * element;
      e += run;
    }
  }
}

DensePass::DensePass(const PassSpec& spec, const device::Machine& machine,
                     device::ExchangeMode mode, Executor& executor, OperandHomes homes)
    : state_(std::make_unique<State>(spec, machine, mode, executor, homes)) {}
DensePass::~DensePass() = default;
DensePass::DensePass(DensePass&&) noexcept = default;

Bytes DensePass::high_water() const { return state_->engine.high_water(); }

device::Ledger DensePass::run(const BucketImage& image, device::ByteRows in, device::ByteRows out) {
  State& s = *state_;
  TESSERA_ASSERT(image.fits(s.spec));
  s.engine.begin_program();
  s.engine.begin_phase(kPrearrange);
  s.load(image, in);
  s.transpose();
  s.engine.exchange("pre-arrange", s.prearrange);
  s.engine.begin_phase(kDistribute);
  s.distribute();
  s.engine.begin_phase(kPropagate);
  s.propagate(image.travel());
  s.engine.begin_phase(kReduce);
  s.reduction.run(s.engine, "reduce");
  s.collect(out);
  return s.engine.take_ledger();
}

}  // namespace tessera::runtime
