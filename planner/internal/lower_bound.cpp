#include "tessera/planner/internal/lower_bound.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "tessera/base/int_math.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/codelets/cost/vector_cycles.hpp"
#include "tessera/planner/internal/estimate.hpp"
#include "tessera/planner/internal/least_multiply.hpp"
#include "tessera/planner/internal/tile_load.hpp"

// Nearly every cost falls when shares get smaller, and shares are smallest where counts are
// largest. Costs that grow with a count (rounds, depth of a reduction) are least at the smallest
// count. The sum of all terms, each at its own best corner, is therefore a bound for the whole box.
namespace tessera::planner::internal {
namespace {

struct Terms {
  std::int64_t cycles = 0, temp = 0;
  StepCounts counts;  // of a form that has fewer steps than any in the box

  void hold(std::int64_t bytes) { temp = std::max(temp, bytes); }
};

// Returns true if every partition of the box must fetch a dense operand of which a tile uses at
// least `needed` grains. This is certain if another tile takes it too and has a share of it.
bool must_fetch(const Case& c, std::int64_t needed, std::int64_t takers) {
  return takers > 1 && (needed > 1 || !c.parity());
}

std::int64_t least_exchange(const Case& c, std::int64_t bytes, bool may_share_bus) {
  std::int64_t rate = c.machine.exchange_bytes_per_cycle;
  if (may_share_bus) rate *= c.machine.tiles_per_exchange_bus;
  return ceil_div(bytes, rate);
}

// Returns true if neighbours among `lo` to `hi` tiles, which take the same data, may be on one bus.
bool may_share_bus(const Case& c, std::int64_t lo, std::int64_t hi) {
  return hi - hi % c.machine.tiles_per_exchange_bus >= lo;
}

// Sets which data some partition of a box of Fwd or GradA lets the tiles of a bus receive together:
// tiles along x are neighbours in Fwd, and along fwd's y or z where no side inside it is cut.
void set_bus_shares(const Case& c, const Least& fwd, Least& v, bool is_neighbour) {
  if (c.parity()) return;
  v.slices_share_bus = is_neighbour && may_share_bus(c, v.lo.x, v.hi.x);
  v.buckets_share_bus = fwd.lo.x == 1 && may_share_bus(c, v.lo.z, v.hi.z);
}

// Returns a bound of the cycles in which a tile receives a dense slice that `takers` tiles or more
// share. A tile that holds a part of it receives the other parts.
std::int64_t least_slice(const Case& c, std::int64_t bytes, std::int64_t takers, bool holds_own,
                         bool shares_bus) {
  const bool takes_others = holds_own && !c.parity();
  return least_exchange(c, takes_others ? bytes / takers * (takers - 1) : bytes, shares_bus);
}

std::int64_t least_reduce(const Case& c, const Least& v, std::int64_t sums) {
  const DataType from = c.problem.partials_type, to = c.problem.data_type;
  const std::int64_t own = ceil_div(sums, v.hi.y), workers = c.machine.workers;
  if (v.lo.y == 1) {
    if (v.hi.y > 1 || !c.types_differ()) return 0;
    return codelets::cast_cycles(own, from, to, workers).value;
  }
  // Counts whole turns of the loop only, because a remainder may be cheaper than the turn it
  // replaces.
  const std::int64_t turns = workers * 16 / bytes_of(from);
  return codelets::reduce_cycles(own / turns * turns, v.lo.y, from, to, workers).value;
}

Terms least_pass(const Case& c, Pass pass, Method method, const Least& v) {
  Terms t;
  const BlockShape block = c.problem.block;
  std::int64_t turned = 0;
  const bool transposes = pass == Pass::GradA && block.area() >= block.rows + block.cols;
  if (transposes) {
    turned = v.bucket_blocks * block.area() * c.input_bytes();
    t.cycles += codelets::transpose_blocks_cycles(v.bucket_blocks, block, c.problem.data_type,
                                                  c.machine.workers)
                    .value;
  }
  const std::int64_t needed = v.share.y * v.share.z;
  const bool spread = operands_spread(c, pass);
  const std::int64_t dense = spread || must_fetch(c, needed, v.lo.x)
                                 ? needed * v.grain.y * v.grain.z * c.input_bytes()
                                 : 0;
  t.cycles += least_slice(c, dense, v.lo.x, !spread, v.slices_share_bus);
  if (v.lo.z > 1)
    t.cycles +=
        least_exchange(c, (v.lo.z - (c.parity() ? 0 : 1)) * v.bucket_bytes, v.buckets_share_bus);

  const std::int64_t sums = v.share.x * v.share.z * v.grain.x * v.grain.z;
  const bool cut = (c.parity() ? v.lo.z : v.lo.y) > 1;
  const std::int64_t held = c.types_differ() || cut ? sums * c.partials_bytes() : 0;
  const std::int64_t others = c.parity() ? sums : ceil_div(sums, v.hi.y) * (v.lo.y - 1);
  const std::int64_t received = v.lo.y > 1 ? others * c.partials_bytes() : 0;
  t.cycles += zeroing_cycles(c, sums) + least_multiply(c, method, v) +
              least_exchange(c, received, false) + least_reduce(c, v, sums);
  t.hold(turned + dense + held + (v.lo.z - 1) * v.bucket_bytes);
  t.hold(turned + dense + held + 2 * v.bucket_bytes);
  t.hold(held + received);
  const std::int64_t senders =
      dense > 0 && !spread ? least_other_sharers(v.lo.x, v.share.y * v.grain.y) : 0;
  t.cycles += receive_starts(c, senders + v.lo.z - 1 + least_other_sharers(v.lo.y, sums));
  t.counts = counts_of({.pass = pass,
                        .parts = v.lo,
                        .transposes = transposes,
                        .fetches = dense > 0 || v.lo.z > 1,
                        .casts = c.types_differ(),
                        .arranges_operands = spread,
                        .arranges_result = result_spread(c, pass)});
  // The operands of all groups without the padding of z.
  const std::int64_t columns = c.grains.g * c.grains.z * v.grain.z;
  if (spread) t.cycles += arrange_cycles(c, v.all.y * v.grain.y, columns);
  if (result_spread(c, pass)) t.cycles += arrange_cycles(c, v.all.x * v.grain.x, columns);
  return t;
}

struct OperandBytes {
  std::int64_t q = 0, s = 0;
};

// Returns a bound of the cycles in which a tile receives the operands of GradW, whose tiles are in
// the order y z x if buckets travel, and else x y z.
std::int64_t least_operands(const Case& c, const Least& v, OperandBytes bytes) {
  const bool buckets = c.candidate.exchange_buckets, spread = operands_spread(c, Pass::GradW);
  if (c.parity()) return least_exchange(c, bytes.q, true) + least_exchange(c, bytes.s, true);
  const bool moved = !buckets && v.lo.x > 1 && v.lo.y * v.lo.z > 1;
  const bool q_neighbours = v.lo.z * (buckets ? v.lo.x : 1) == 1;
  const bool s_neighbours = buckets || v.lo.y * v.lo.z == 1;
  std::int64_t cycles = least_slice(c, bytes.q, v.lo.y, !moved && !spread,
                                    q_neighbours && may_share_bus(c, v.lo.y, v.hi.y)) +
                        least_slice(c, bytes.s, v.lo.x, !moved && !spread,
                                    s_neighbours && may_share_bus(c, v.lo.x, v.hi.x));
  std::int64_t senders = 0;
  if (!spread && bytes.q > 0) senders += least_other_sharers(v.lo.y, v.share.x * v.grain.x);
  if (!spread && bytes.s > 0) senders += least_other_sharers(v.lo.x, v.share.y * v.grain.y);
  if (moved) cycles += least_exchange(c, v.meta_bytes, false), ++senders;
  return cycles + receive_starts(c, senders);
}

Terms least_grad_w(const Case& c, const Least& v) {
  Terms t;
  const std::int64_t bytes = c.input_bytes(), workers = c.machine.workers;
  const DataType type = c.problem.data_type;
  const std::int64_t q_needed = v.share.x * v.share.z, s_needed = v.share.y * v.share.z;
  const std::int64_t q_bytes = q_needed * v.grain.x * v.grain.z * bytes;
  const std::int64_t s_bytes = s_needed * v.grain.y * v.grain.z * bytes;
  const bool spread = operands_spread(c, Pass::GradW);
  const std::int64_t q = spread || must_fetch(c, q_needed, v.lo.y) ? q_bytes : 0;
  const std::int64_t s = spread || must_fetch(c, s_needed, v.lo.x) ? s_bytes : 0;
  const bool amp = c.candidate.grad_w == Method::BlockGradWAmp;
  t.cycles += least_operands(c, v, {q, s});
  if (amp) {
    const std::int64_t z = v.share.z * v.grain.z;
    t.cycles += codelets::rearrange_cycles(v.share.x, v.grain.x, z, type, workers).value +
                codelets::rearrange_cycles(v.share.y, v.grain.y, z, type, workers).value;
    t.hold(q + s + q_bytes + s_bytes);
  }
  const std::int64_t held = amp ? q_bytes + s_bytes : q + s;
  const std::int64_t values = v.bucket_blocks * c.problem.block.area();
  const std::int64_t travelling = v.meta_bytes + values * c.partials_bytes();
  const bool buckets = c.candidate.exchange_buckets;
  if (v.lo.z > 1 && c.parity() && !buckets)
    t.cycles += v.lo.z * (least_exchange(c, q_bytes, true) + least_exchange(c, s_bytes, true));
  else if (v.lo.z > 1)
    t.cycles += v.lo.z * least_exchange(c, buckets ? travelling : q_bytes + s_bytes, false);
  t.cycles += zeroing_cycles(c, values) + least_grad_w_multiply(c, v);
  if (buckets)
    t.hold(held + 2 * travelling);
  else if (c.parity())
    t.hold(2 * held);
  else
    t.hold(held + (v.lo.z > 1 ? q_bytes + s_bytes : 0));
  if (c.types_differ())
    t.cycles += codelets::cast_cycles(values, c.problem.partials_type, type, workers).value;
  t.cycles += receive_starts(c, v.lo.z > 1 ? v.lo.z : 0);
  t.counts = counts_of({.pass = Pass::GradW,
                        .parts = v.lo,
                        .fetches = q + s > 0,
                        .rearranges = amp,
                        .buckets_travel = buckets,
                        .casts = c.types_differ(),
                        .arranges_operands = spread});
  const std::int64_t columns = c.grains.g * c.grains.z * v.grain.z;
  if (spread)
    t.cycles += arrange_cycles(c, v.all.x * v.grain.x, columns) +
                arrange_cycles(c, v.all.y * v.grain.y, columns);
  return t;
}

Least least_fwd(const Case& c, const Box& box, const BucketSize& bucket) {
  Least v;
  v.lo = box.lo;
  v.hi = box.hi;
  v.grain = c.candidate.grain;
  v.all = c.grains;
  v.share = ceil_div(c.grains, box.hi);
  v.most_z = ceil_div(c.grains.z, box.lo.z);
  v.counts = bucket.cell;
  if (!c.parity()) {
    // Fewer cells than anywhere in the box, as small as anywhere: not fuller than any cut's. If the
    // map says what cells hold, the fullest holds no less than the mean of the most cells.
    Scatter scatter = scatter_of(c, v.share, c.problem.density, box.lo.g * box.lo.x * box.lo.y);
    if (c.has_map())
      scatter.density = (1 - 1e-9) * static_cast<double>(c.pattern->blocks) /
                        static_cast<double>(box.hi.x * box.hi.y * v.share.x * v.share.y);
    const TileLoad load = cell_load(v.share, c.has_map() ? 0 : mean_of_fullest(scatter), scatter);
    v.density = scatter.density;
    v.counts = {static_cast<std::int64_t>(load.rows), 0, static_cast<std::int64_t>(load.nonzeros)};
  }
  set_bus_shares(c, v, v, /*is_neighbour=*/true);
  v.bucket_blocks = bucket.blocks;
  v.meta_bytes = bucket.fwd_words * c.word_bytes();
  v.bucket_bytes = bucket.blocks * c.problem.block.area() * c.input_bytes() + v.meta_bytes;
  return v;
}

Least swapped(const Case& c, const Least& fwd, const BucketSize& bucket) {
  Least v = fwd;
  for (Dims Least::* dims : {&Least::lo, &Least::hi, &Least::grain, &Least::all, &Least::share})
    v.*dims = swap_xy(fwd.*dims);
  set_bus_shares(c, fwd, v, fwd.lo.x * fwd.lo.z == 1);
  if (c.candidate.shared_buckets()) return v;
  v.counts = bucket.cell_swapped;
  if (!c.parity()) {  // as in the price, the non-zeros of the fullest cell
    const double rows = std::ceil(filled(double(v.share.x), v.density, double(v.share.y)));
    v.counts = {std::min(fwd.counts.total, std::int64_t(rows)), 0, fwd.counts.total};
  }
  v.bucket_bytes += (bucket.grad_a_words - bucket.fwd_words) * c.word_bytes();
  return v;
}

}  // namespace

Bound lower_bound(const Case& c, const Box& box) {
  Box cut = box;
  // The counts at the far corner may exceed the number of tiles, but the sizes there are still a
  // bound.
  cut.lo.g = cut.hi.g = c.grains.g;
  const BucketSize bucket = bucket_size(c, make_cut(c, cut.hi), SizeRule::LowerBound);
  Bound bound;
  const Cut least_shares = {cut.lo, ceil_div(c.grains, cut.hi)};
  if (!words_fit(c, least_shares, bucket)) return {false, 0, 0};
  const Least fwd = least_fwd(c, cut, bucket);
  std::array<Terms, 3> passes;
  passes[0] = least_pass(c, Pass::Fwd, c.candidate.fwd, fwd);
  if (c.problem.grad_a)
    passes[1] = least_pass(c, Pass::GradA, c.candidate.grad_a, swapped(c, fwd, bucket));
  if (c.problem.grad_w) passes[2] = least_grad_w(c, fwd);
  for (const Terms& t : passes) {
    bound.cycles += t.cycles;
    if (!c.parity())
      bound.cycles += waiting_cycles(c.machine, t.counts) + asking_cycles(c.machine, t.counts);
    bound.temp = std::max(bound.temp, t.temp);
  }
  const std::int64_t resident = resident_bytes(c, make_cut(c, cut.hi), bucket);
  bound.possible = c.parity() || bound.temp + resident <= c.machine.tile_memory.value;
  return bound;
}

}  // namespace tessera::planner::internal
