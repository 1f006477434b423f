#include "tessera/planner/internal/lower_bound.hpp"

#include <algorithm>
#include <array>

#include "tessera/base/int_math.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/codelets/cost/matmul_cycles.hpp"
#include "tessera/codelets/cost/vector_cycles.hpp"
#include "tessera/planner/internal/estimate.hpp"
#include "tessera/planner/internal/tile_load.hpp"

// Nearly every cost falls when shares get smaller, and shares are smallest where counts are
// largest. Costs that grow with a count (rounds, depth of a reduction) are least at the smallest
// count. The sum of all terms, each at its own best corner, is therefore a bound for the whole box.
namespace tessera::planner::internal {
namespace {

// A box in the naming of one pass, with the least sizes anywhere in it.
struct Least {
  Dims lo, hi;              // partition counts
  Dims grain;               // of the pass
  Dims all;                 // grains of the layer
  Dims share;               // least grains of a tile
  std::int64_t most_z = 0;  // most z grains of a tile
  UniformCounts counts;     // rows and total of the least share
  std::int64_t bucket_blocks = 0, bucket_bytes = 0, meta_bytes = 0;
};

struct Terms {
  std::int64_t cycles = 0, temp = 0;
  StepCounts counts;  // of a form that has fewer steps than any in the box

  void hold(std::int64_t bytes) { temp = std::max(temp, bytes); }
};

// The formulas of the methods rise with z in steps of two grains, but one and two grains have
// separate, cheaper loops. The least of four neighbours therefore bounds all larger counts.
constexpr std::int64_t kNeighbours = 4;

codelets::LinearCycles least_worker(const codelets::MatMulKernel& kernel, std::int64_t least_grains,
                                    std::int64_t most_grains, std::int64_t grain) {
  codelets::LinearCycles least = codelets::worker_cycles(kernel, least_grains * grain);
  const std::int64_t last = std::min(most_grains, least_grains + kNeighbours - 1);
  for (std::int64_t k = least_grains + 1; k <= last; ++k) {
    const codelets::LinearCycles at = codelets::worker_cycles(kernel, k * grain);
    least.start = std::min(least.start, at.start);
    least.per_row = std::min(least.per_row, at.per_row);
    least.per_nonzero = std::min(least.per_nonzero, at.per_nonzero);
  }
  return least;
}

// Returns a bound of workers * busiest worker, where workers divide rows x z grains: the sum over
// all workers. Per grain of z, no loop is cheaper for a non-zero than the loops of one and two
// grains.
std::int64_t shared_rows(const codelets::MatMulKernel& kernel, const Least& v,
                         std::int64_t blocks) {
  if (v.counts.rows == 0) return 0;  // no worker is started
  const auto one = codelets::worker_cycles(kernel, v.grain.z);
  if (v.most_z == 1)
    return one.start * kernel.workers + v.counts.rows * one.per_row + blocks * one.per_nonzero;
  const auto two = codelets::worker_cycles(kernel, 2 * v.grain.z);
  const std::int64_t per_two = std::min(2 * one.per_nonzero, two.per_nonzero);
  return kernel.workers * std::min(one.start, two.start) +
         v.counts.rows * std::min(one.per_row, two.per_row) + blocks * v.share.z * per_two / 2;
}

// Returns a bound for ElementTranspose, which deals each row's non-zeros to the workers. Under
// transpose_from_swapped_counts it takes average columns times all rows, as PopSparse does.
std::int64_t dealt_rows(const Case& c, const codelets::MatMulKernel& kernel, const Least& v) {
  const auto worker = least_worker(kernel, v.share.z, v.most_z, v.grain.z);
  std::int64_t rows = v.counts.rows, dealt = std::max(rows, v.counts.total / kernel.workers);
  if (c.parity()) {
    rows = v.counts.total == 0 ? 0 : 1;
    const auto average =
        static_cast<std::int64_t>(static_cast<double>(v.share.y) * c.problem.density);
    rows = std::max(rows, average);
    dealt = rows * ceil_div(v.share.x, kernel.workers);
  }
  return kernel.workers * worker(rows, dealt).value;
}

std::int64_t least_multiply(const Case& c, Method method, const Least& v) {
  const codelets::MatMulKernel kernel = kernel_of(c, method, c.problem.block);
  const std::int64_t blocks = v.counts.total;
  const std::int64_t pieces = c.parity() ? v.lo.z : std::min(v.lo.z, blocks);
  const std::int64_t scan = codelets::expected_scan_cycles(method, pieces, pieces, 1).value;
  if (blocks == 0 && !c.parity()) return scan;
  const auto load = codelets::supervisor_load_cycles(kernel, v.grain.z);
  const std::int64_t loads = load(v.counts.rows, blocks).value;
  if (method == Method::ElementTranspose) return scan + dealt_rows(c, kernel, v);
  if (c.problem.is_element_wise()) return scan + shared_rows(kernel, v, blocks);
  // Workers share columns of the batch; PopSparse's shares are whole grains.
  const std::int64_t unit = c.parity() ? v.grain.z : 1, units = v.grain.z / unit;
  const std::int64_t z = ceil_div(v.share.z * units, kernel.workers);
  const auto worker = least_worker(kernel, z, v.most_z * units, unit);
  return scan + loads + kernel.workers * worker(0, blocks).value;
}

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
  t.cycles += least_exchange(c, dense, true);
  if (v.lo.z > 1)
    t.cycles += least_exchange(c, (v.lo.z - (c.parity() ? 0 : 1)) * v.bucket_bytes, true);

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

std::int64_t least_grad_w_multiply(const Case& c, const Least& v) {
  const codelets::MatMulKernel kernel = kernel_of(c, c.candidate.grad_w, c.problem.block);
  const std::int64_t scan = codelets::expected_scan_cycles(kernel.method, 1, 1, 1).value;
  const std::int64_t rounds = v.lo.z, total = v.counts.total;
  const std::int64_t z = v.share.z * v.grain.z;
  if (total == 0 && !c.parity()) return rounds * scan;
  const auto worker = least_worker(kernel, v.share.z, v.most_z, v.grain.z);
  if (kernel.method == Method::BlockGradWAmp) {
    const auto load = codelets::supervisor_load_cycles(kernel, z);
    const std::int64_t visited = c.parity() ? total : std::max(total, rounds);
    return rounds * (scan + kernel.workers * worker.start) +
           visited * (load.per_nonzero + kernel.workers * worker.per_nonzero);
  }
  if (c.parity()) return total * worker.per_nonzero;
  // The busiest worker of a round has at least an even part of the round's non-zeros, and one.
  return rounds * (scan + kernel.workers * worker.start) +
         std::max(total, rounds * kernel.workers) * worker.per_nonzero;
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
  t.cycles += least_exchange(c, q, true) + least_exchange(c, s, true);
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
  if (v.lo.z > 1)
    t.cycles +=
        v.lo.z * (buckets ? least_exchange(c, travelling, false)
                          : least_exchange(c, q_bytes, true) + least_exchange(c, s_bytes, true));
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
    v.counts = {static_cast<std::int64_t>(load.rows), 0, static_cast<std::int64_t>(load.nonzeros)};
  }
  v.bucket_blocks = bucket.blocks;
  v.meta_bytes = bucket.fwd_words * c.word_bytes();
  v.bucket_bytes = bucket.blocks * c.problem.block.area() * c.input_bytes() + v.meta_bytes;
  return v;
}

Least swapped(const Case& c, const Least& fwd, const BucketSize& bucket) {
  Least v = fwd;
  for (Dims Least::* dims : {&Least::lo, &Least::hi, &Least::grain, &Least::all, &Least::share})
    v.*dims = swap_xy(fwd.*dims);
  if (c.candidate.shared_buckets()) return v;
  v.counts = bucket.cell_swapped;
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
