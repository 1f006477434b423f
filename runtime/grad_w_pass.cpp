#include "tessera/runtime/grad_w_pass.hpp"

#include <cstring>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/codelets/bucket_layout.hpp"
#include "tessera/codelets/cost/vector_cycles.hpp"
#include "tessera/runtime/internal/grad_w_base.hpp"
#include "tessera/runtime/internal/visit.hpp"

namespace tessera::runtime {

using device::Gather;
using device::SlotKind;

GradWPass::Base::Base(const PassSpec& s, TileOrder order, const device::Machine& machine,
                      device::ExchangeMode mode, Executor& executor)
    : spec(s),
      engine(machine, mode, executor),
      home_map(s.parts(), TileOrder::Yzx),
      map(s.parts(), order),
      shape{false, s.grid.meta_words * s.word_bytes(), values() * bytes_of(s.partials_type)},
      all(map.all()),
      kernel(codelets::find_kernel(internal::kernel_key(s)).run) {
  add_tiles();
}

void GradWPass::Base::add_tiles() {
  const Dims& splits = spec.grid.splits;
  const std::int64_t sum_bytes = bytes_of(spec.partials_type);
  tiles.resize(all.size());
  for (const TileId tile : all) {
    const Cell home = home_map.cell(tile), c = map.cell(tile);
    const auto landing = [&](const char* name, std::int64_t rows, std::int64_t bytes, int last) {
      return engine.add_slot({tile, name, rows, bytes, SlotKind::Landing, kPrearrange, last});
    };
    const std::int64_t q_share =
        share_of(spec.grid.x_range(home.x).size(), 1, splits.y, home.y).size();
    const std::int64_t s_share =
        share_of(spec.grid.y_range(home.y).size(), 1, splits.x, home.x).size();
    TileSlots& slots = tiles[std::size_t(tile.value)];
    // Room for the largest slice: travelling operands change hands.
    slots.q = landing("output gradient", spec.grid.x_range(0).size(), row_bytes(), kPropagate);
    slots.s = landing("input", spec.grid.y_range(0).size(), row_bytes(), kPropagate);
    const bool q_is_here = home == c && splits.y == 1, s_is_here = home == c && splits.x == 1;
    slots.q_home =
        q_is_here ? slots.q : landing("output gradient share", q_share, row_bytes(), kPrearrange);
    slots.s_home = s_is_here ? slots.s : landing("input share", s_share, row_bytes(), kPrearrange);
    if (spec.method == codelets::Method::BlockGradWAmp) {
      landing("rearranged output gradient", spec.grid.x_range(0).size(), row_bytes(), kPrearrange);
      landing("rearranged input", spec.grid.y_range(0).size(), row_bytes(), kPrearrange);
    }
    internal::reserve_other_words(engine, spec, tile, {kPrearrange, kCast});
    meta_homes.push_back(landing("bucket words", 1, shape.meta_bytes, kCast));
    slots.meta = meta_homes.back();
    if (home != c) slots.meta = landing("bucket words here", 1, shape.meta_bytes, kPropagate);
    slots.sums = engine.add_slot(
        {tile, "gradient sums", 1, values() * sum_bytes, SlotKind::Owned, kDistribute, kCast});
    slots.result = slots.sums;
    if (spec.partials_type != spec.data_type())
      slots.result = engine.add_slot({tile, "gradients", 1, values() * bytes_of(spec.data_type()),
                                      SlotKind::Owned, kCast, kCast});
  }
}

// A slice of an operand to all tiles that need it: dQ to the tiles of one (x, z), S to those of one
// (y, z). Each of them holds a share of it at home.
void GradWPass::Base::add_operand_gathers(std::vector<Gather>& gathers, bool q_side) const {
  const std::int64_t others = q_side ? spec.grid.splits.y : spec.grid.splits.x;
  for (const TileId first : all) {
    Cell c = home_map.cell(first);
    std::int64_t& other = q_side ? c.y : c.x;
    if (other != 0) continue;
    const std::int64_t rows = (q_side ? spec.grid.x_range(c.x) : spec.grid.y_range(c.y)).size();
    Gather slice;
    for (; other < others; ++other) {
      const TileSlots& home = slots_of(home_map.tile(c));
      const TileSlots& here = slots_of(map.tile(c));
      slice.pieces.push_back(
          {q_side ? home.q_home : home.s_home, {0, share_of(rows, 1, others, other).size()}});
      slice.destinations.push_back(q_side ? here.q : here.s);
    }
    if (slice.pieces.front().slot != slice.destinations.front())
      gathers.push_back(std::move(slice));
  }
}

void GradWPass::Base::seal() {
  engine.seal();
  std::vector<Gather> gathers;
  add_operand_gathers(gathers, true);
  add_operand_gathers(gathers, false);
  for (const TileId home : home_map.all()) {
    const TileId here = map.tile(home_map.cell(home));
    const device::SlotId from = meta_homes[std::size_t(home.value)];
    if (slots_of(here).meta != from) gathers.push_back({{{from, {0, 1}}}, {slots_of(here).meta}});
  }
  prearrange = engine.prepare(std::move(gathers));
}

void GradWPass::Base::load(const BucketImage& image, device::ByteRows q_grad, device::ByteRows s) {
  const Dims &splits = spec.grid.splits, &size = spec.grid.size;
  // Rows of a share that begin at `begin`.
  const auto slice = [&](device::ByteRows rows, std::int64_t begin, Range share, std::int64_t k) {
    device::ByteRows view = rows.sub({begin + share.begin, begin + share.end});
    view.data += k * row_bytes();
    view.row_bytes = row_bytes();
    return view;
  };
  for (const TileId tile : home_map.all()) {
    const Cell c = home_map.cell(tile);
    const Range x = spec.grid.x_range(c.x), y = spec.grid.y_range(c.y);
    engine.load(slots_of(tile).q_home,
                slice(q_grad, c.g * size.x + x.begin, share_of(x.size(), 1, splits.y, c.y), c.z));
    engine.load(slots_of(tile).s_home,
                slice(s, c.g * size.y + y.begin, share_of(y.size(), 1, splits.x, c.x), c.z));
    const std::int64_t bucket = spec.grid.bucket_index(c.x, c.y, c.z);
    engine.load(
        meta_homes[std::size_t(tile.value)],
        internal::one_row(image.groups[std::size_t(c.g)].meta_words(bucket), shape.meta_bytes));
  }
}

// The machine brings both operands into block order; our kernels read them where they lie, so only
// cycles and memory are charged.
void GradWPass::Base::rearrange() {
  if (spec.method != codelets::Method::BlockGradWAmp) return;
  const BlockShape block = spec.grid.block;
  engine.compute("rearrange", all, [&](const device::Tile& tile) {
    const Cell c = map.cell(tile.id());
    const auto side = [&](Range rows, std::int64_t length) {
      return codelets::rearrange_cycles(rows.size() / length, length, z(), spec.data_type(),
                                        engine.machine().workers);
    };
    return side(spec.grid.x_range(c.x), block.rows) + side(spec.grid.y_range(c.y), block.cols);
  });
}

Cycles GradWPass::Base::clear_sums(const device::Tile& tile) const {
  const device::ByteRows sums = tile.view(slots_of(tile.id()).sums);
  std::memset(sums.data, 0, std::size_t(sums.bytes()));
  return codelets::zero_cycles(sums.bytes(), engine.machine().workers);
}

Cycles GradWPass::Base::visit(const device::Tile& tile, const Visit& v) const {
  const std::int64_t element = bytes_of(spec.data_type());
  codelets::KernelArgs args;
  args.sub_group = codelets::sub_group_id(v.of.x, v.of.y, spec.grid.splits.y);
  args.block = spec.grid.block;
  args.meta = tile.view(v.meta).data;
  args.gradients = tile.view(v.sums).data;
  args.in = internal::operand(tile.view(v.q), element);
  args.in_s = internal::operand(tile.view(v.s), element);
  kernel(args);
  return internal::visit_cycles(spec, engine.machine(), {&args.meta, 1}, args.sub_group);
}

void GradWPass::Base::cast() {
  if (spec.partials_type == spec.data_type()) return;
  TESSERA_ASSERT(spec.partials_type == DataType::Float);
  engine.compute("cast", all, [&](const device::Tile& tile) {
    const TileSlots& slots = slots_of(tile.id());
    const auto* from = reinterpret_cast<const float*>(tile.view(slots.sums).data);
    std::byte* result = tile.view(slots.result).data;
    with_type(spec.data_type(), [&](auto zero) {
      using T = decltype(zero);
      auto* to = reinterpret_cast<T*>(result);
      for (std::int64_t i = 0; i < values(); ++i) to[i] = T(from[i]);
    });
    return codelets::cast_cycles(values(), spec.partials_type, spec.data_type(),
                                 engine.machine().workers);
  });
}

void GradWPass::Base::collect(std::byte* gradients) const {
  const std::int64_t bytes = values() * bytes_of(spec.data_type());
  if (bytes == 0) return;
  for (const TileId tile : all) {
    const Cell c = map.cell(tile);
    const std::int64_t bucket = c.g * spec.grid.buckets() + spec.grid.bucket_index(c.x, c.y, c.z);
    std::memcpy(gradients + bucket * bytes, engine.view(slots_of(tile).result).data,
                std::size_t(bytes));
  }
}

device::Ledger GradWPass::Base::run(const BucketImage& image, device::ByteRows q_grad,
                                    device::ByteRows s, std::byte* gradients) {
  TESSERA_ASSERT(image.fits(spec));
  engine.begin_program();
  engine.begin_phase(kPrearrange);
  load(image, q_grad, s);
  engine.exchange("pre-arrange", prearrange);
  rearrange();
  work(image.travel());
  engine.begin_phase(kCast);
  cast();
  collect(gradients);
  return engine.take_ledger();
}

GradWPass::GradWPass(const PassSpec& spec, GradWExchange exchange, const device::Machine& machine,
                     device::ExchangeMode mode, Executor& executor)
    : state_(exchange == GradWExchange::Inputs
                 ? internal::make_grad_w_inputs(spec, machine, mode, executor)
                 : internal::make_grad_w_buckets(spec, machine, mode, executor)) {}
GradWPass::~GradWPass() = default;
GradWPass::GradWPass(GradWPass&&) noexcept = default;

Bytes GradWPass::high_water() const { return state_->engine.high_water(); }

device::Ledger GradWPass::run(const BucketImage& image, device::ByteRows q_grad, device::ByteRows s,
                              std::byte* gradients) {
  return state_->run(image, q_grad, s, gradients);
}

}  // namespace tessera::runtime
