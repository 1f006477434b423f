#include <algorithm>
#include <cmath>

#include "tessera/base/int_math.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/codelets/cost/matmul_cycles.hpp"
#include "tessera/codelets/cost/vector_cycles.hpp"
#include "tessera/codelets/work_split.hpp"
#include "tessera/planner/internal/estimate.hpp"
#include "tessera/planner/internal/slowest_worker.hpp"
#include "tessera/planner/internal/tile_load.hpp"

// The estimate of Fwd and GradA, which multiply a sparse operand by a dense one. GradA is Fwd with
// x and y swapped, so both are described in the naming of the pass: Q[x][z] = R[x][y] * S[y][z].
namespace tessera::planner::internal {
namespace {

struct PassView {
  Pass pass;
  Method method;
  Dims grain, grains, parts, share;  // in the naming of the pass
  UniformCounts counts;              // of R as the kernel reads it, rows x columns
  TileLoad load;                     // of the fullest cell
  BlockShape block;                  // as stored in the bucket
  std::int64_t bucket_bytes;
  double spill_chance;
  bool x_consecutive, z_consecutive;  // parts along that dimension are on neighbouring tiles
};

std::int64_t bucket_bytes(const Case& c, const BucketSize& bucket, std::int64_t words) {
  return bucket.blocks * c.problem.block.area() * c.input_bytes() + words * c.word_bytes();
}

// Returns the cycles of the busiest worker, by the split of rows x z grains that the encoder uses.
std::int64_t busiest_worker(const codelets::MatMulKernel& kernel, const PassView& v) {
  thread_local std::vector<codelets::WorkShare> shares;
  const bool rows_split =
      kernel.method == Method::ElementFwd || kernel.method == Method::ElementGradA;
  codelets::split_between_workers(rows_split ? v.counts.rows : 1, v.share.z, kernel.workers, {},
                                  shares);
  Cycles most;
  for (const codelets::WorkShare& s : shares) {
    const std::int64_t rows = rows_split ? s.rows.size() : v.counts.rows;
    const auto cycles = codelets::worker_cycles(kernel, s.cols.size() * v.grain.z);
    most = std::max(most, cycles(rows, rows * v.counts.per_row));
  }
  return most.value;
}

// Returns the cycles of a worker if each row's non-zeros are dealt to the workers in turn and every
// worker computes all of z.
std::int64_t dealt_rows(const codelets::MatMulKernel& kernel, const PassView& v) {
  const std::int64_t dealt = v.counts.rows * ceil_div(v.counts.per_row, kernel.workers);
  return codelets::worker_cycles(kernel, v.share.z * v.grain.z)(v.counts.rows, dealt).value;
}

std::int64_t fullest_tile_cycles(const Case& c, const PassView& v) {
  const codelets::MatMulKernel kernel = kernel_of(c, v.method, v.block);
  // Each of the cell's buckets holds a piece of it, unless there are fewer non-zeros than buckets;
  // then the others are empty and have no record to pass.
  const std::int64_t pieces = std::min<std::int64_t>(v.parts.z, std::llround(v.load.nonzeros));
  const std::int64_t scan = codelets::expected_scan_cycles(v.method, pieces, pieces, 1).value;
  if (v.load.nonzeros <= 0) return scan;
  const auto load = codelets::supervisor_load_cycles(kernel, v.grain.z);
  return scan + cycles_at(load, v.load) +
         workers_cycles({kernel, v.load, pieces, v.share.z, v.grain.z});
}

std::int64_t multiply_cycles(const Case& c, const PassView& v) {
  if (!c.parity()) return fullest_tile_cycles(c, v);
  const codelets::MatMulKernel kernel = kernel_of(c, v.method, v.block);
  const std::int64_t rows = v.counts.rows, blocks = rows * v.counts.per_row;
  const std::int64_t scan = codelets::expected_scan_cycles(v.method, v.parts.z, v.parts.z, 1).value;
  const std::int64_t load = codelets::supervisor_load_cycles(kernel, v.grain.z)(rows, blocks).value;
  const std::int64_t worker =
      v.method == Method::ElementTranspose ? dealt_rows(kernel, v) : busiest_worker(kernel, v);
  return scan + load + kernel.workers * worker;
}

// Adds the step that transposes the values of blocks for GradA, because they are stored row by row
// for Fwd. Returns its temporary bytes.
std::int64_t turn_values(const Case& c, const PassView& v, const BucketSize& bucket,
                         PassEstimate& pass, PassForm& form) {
  const BlockShape block = c.problem.block;
  const bool needed = v.pass == Pass::GradA && block.area() >= block.rows + block.cols;
  if (v.pass != Pass::GradA) return 0;
  const std::int64_t bytes = needed ? bucket.blocks * block.area() * c.input_bytes() : 0;
  const std::int64_t cycles =
      needed ? codelets::transpose_blocks_cycles(bucket.blocks, block, c.problem.data_type,
                                                 c.machine.workers)
                   .value
             : 0;
  pass.add(Term::TransposeValues, cycles, bytes);
  form.transposes = needed;
  return bytes;
}

// The bytes that a pass keeps in temporary memory from step to step.
struct Held {
  std::int64_t turned = 0, dense = 0, buckets = 0, sums = 0;
};

void exchange_operands(const Case& c, const PassView& v, Held& held, PassEstimate& pass,
                       PassForm& form) {
  const std::int64_t tiles = v.parts.product();
  const bool spread = operands_spread(c, v.pass);
  held.dense = fetched_bytes(c, {.needed = v.share.y * v.share.z,
                                 .all = v.grains.g * v.grains.y * v.grains.z,
                                 .tiles = tiles,
                                 .grain_bytes = v.grain.y * v.grain.z * c.input_bytes(),
                                 .at_home = v.parts.x == 1 && !spread});
  // In PopLibs a tile's own bucket and sums travel like the others'.
  const std::int64_t visited = v.parts.z > 1 ? v.parts.z * v.bucket_bytes : 0;
  held.buckets = (v.parts.z - 1) * v.bucket_bytes;
  const std::int64_t last = v.grains.y - (v.parts.y - 1) * v.share.y;
  const std::int64_t rows = v.share.y * v.grain.y;
  const std::int64_t senders =
      spread ? spread_senders(c, v.grains.y * v.grain.y, rows, v.share.z * v.grain.z)
             : most_senders(v.parts.x, rows, last * v.grain.y);
  Shared slice = shared_rows(held.dense, rows, v.parts.x, v.x_consecutive ? v.parts.x : 1);
  if (spread) slice.piece_bytes = 0, slice.holds_own = false;
  const Cycles cycles =
      receive_cycles(c, slice, tiles) +
      receive_cycles(c, {visited, v.bucket_bytes, v.parts.z, v.z_consecutive ? v.parts.z : 1},
                     tiles) +
      Cycles(receive_starts(c, (held.dense > 0 ? senders : 0) + v.parts.z - 1));
  pass.add(Term::ExchangeOperands, cycles.value, held.turned + held.dense + held.buckets);
  form.fetches = cycles.value > 0;
}

void multiply(const Case& c, const PassView& v, Held& held, PassEstimate& pass) {
  const std::int64_t sums = v.share.x * v.share.z * v.grain.x * v.grain.z;
  // PopLibs tests z where y decides whether sums are kept.
  const bool is_cut = (c.parity() ? v.parts.z : v.parts.y) > 1;
  held.sums = c.types_differ() || is_cut ? sums * c.partials_bytes() : 0;
  pass.add(Term::Multiply, zeroing_cycles(c, sums) + multiply_cycles(c, v),
           held.turned + held.dense + held.buckets + held.sums);
  pass.add(Term::Propagate, propagation_cycles(c, v.spill_chance, v.parts.z, v.bucket_bytes),
           held.turned + 2 * v.bucket_bytes + held.dense + held.sums);
}

// Returns the cycles of the slowest reduction. Shares that are rounded up leave a smaller last one,
// whose remainder of a loop may cost more than the whole turns of the others; so may the shares of
// the last part along x.
std::int64_t slowest_reduction(const Case& c, const PassView& v) {
  const DataType from = c.problem.partials_type, to = c.problem.data_type;
  const auto cycles = [&](std::int64_t n) {
    return codelets::reduce_cycles(n, v.parts.y, from, to, c.machine.workers).value;
  };
  std::int64_t slowest = 0;
  const std::int64_t last_rows = v.grains.x - (v.parts.x - 1) * v.share.x;
  for (const std::int64_t rows : {v.share.x, last_rows}) {
    const std::int64_t sums = rows * v.share.z * v.grain.x * v.grain.z;
    const std::int64_t own = ceil_div(sums, v.parts.y);
    slowest = std::max(slowest, cycles(own));
    if (c.parity()) return slowest;  // PopLibs prices the largest share
    if (sums % own != 0) slowest = std::max(slowest, cycles(sums % own));
  }
  return slowest;
}

void reduce(const Case& c, const PassView& v, const Held& held, PassEstimate& pass) {
  const codelets::ExchangeWidth width{c.machine.exchange_bytes_per_cycle, 1};
  const DataType from = c.problem.partials_type, to = c.problem.data_type;
  const std::int64_t sums = v.share.x * v.share.z * v.grain.x * v.grain.z;
  const bool cut = v.parts.y > 1;
  const std::int64_t own = ceil_div(sums, v.parts.y);
  const std::int64_t others = c.parity() ? sums : own * (v.parts.y - 1);
  const std::int64_t received = cut ? others * c.partials_bytes() : 0;
  const std::int64_t exchange = codelets::exchange_cycles(received, width).value +
                                receive_starts(c, other_sharers(v.parts.y, sums));
  pass.add(Term::ExchangeSums, exchange, held.sums + received);

  Cycles cycles;
  if (cut)
    cycles = Cycles(slowest_reduction(c, v));
  else if (c.types_differ())
    cycles = codelets::cast_cycles(own, from, to, c.machine.workers);
  const bool needed = cut || c.types_differ();
  pass.add(cut ? Term::ReduceSums : Term::CastSums, cycles.value,
           held.sums + received + (needed ? own * c.input_bytes() : 0));
}

PassEstimate estimate_pass(const Case& c, const PassView& v, const BucketSize& bucket) {
  PassEstimate pass;
  pass.pass = v.pass;
  Held held;
  PassForm form{.pass = v.pass,
                .parts = v.parts,
                .casts = c.types_differ(),
                .arranges_operands = operands_spread(c, v.pass),
                .arranges_result = result_spread(c, v.pass)};
  held.turned = turn_values(c, v, bucket, pass, form);
  exchange_operands(c, v, held, pass, form);
  multiply(c, v, held, pass);
  reduce(c, v, held, pass);
  pass.counts = counts_of(form);
  return pass;
}

// Returns the counts that GradA's kernel walks. The transposing kernels walk the forward rows.
UniformCounts grad_a_counts(const Case& c, const Cut& cut, const BucketSize& bucket) {
  if (c.candidate.grad_a == Method::ElementGradA) return bucket.cell_swapped;
  if (!c.parity()) return bucket.cell;
  if (c.candidate.grad_a == Method::ElementTranspose)
    return {bucket.cell_swapped.per_row, cut.share.y, 0};
  return {bucket.cell_swapped.per_row, bucket.cell_swapped.rows, 0};
}

}  // namespace

PassEstimate estimate_fwd(const Case& c, const Cut& cut, const BucketSize& bucket) {
  return estimate_pass(c,
                       {.pass = Pass::Fwd,
                        .method = c.candidate.fwd,
                        .grain = c.candidate.grain,
                        .grains = c.grains,
                        .parts = cut.parts,
                        .share = cut.share,
                        .counts = bucket.cell,
                        .load = bucket.fullest,
                        .block = c.problem.block,
                        .bucket_bytes = bucket_bytes(c, bucket, bucket.fwd_words),
                        .spill_chance = bucket.spill_chance,
                        .x_consecutive = true,
                        .z_consecutive = cut.parts.x == 1},
                       bucket);
}

PassEstimate estimate_grad_a(const Case& c, const Cut& cut, const BucketSize& bucket) {
  const std::int64_t words = c.candidate.shared_buckets() ? bucket.fwd_words : bucket.grad_a_words;
  const bool own_words = c.candidate.grad_a == Method::ElementGradA;
  return estimate_pass(c,
                       {.pass = Pass::GradA,
                        .method = c.candidate.grad_a,
                        .grain = swap_xy(c.candidate.grain),
                        .grains = swap_xy(c.grains),
                        .parts = swap_xy(cut.parts),
                        .share = swap_xy(cut.share),
                        .counts = grad_a_counts(c, cut, bucket),
                        .load = own_words ? swapped(bucket.fullest) : bucket.fullest,
                        .block = c.problem.block,
                        .bucket_bytes = bucket_bytes(c, bucket, words),
                        .spill_chance = bucket.spill_chance,
                        .x_consecutive = cut.parts.z * cut.parts.x == 1,
                        .z_consecutive = cut.parts.x == 1},
                       bucket);
}

}  // namespace tessera::planner::internal
