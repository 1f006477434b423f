#include <algorithm>
#include <cmath>

#include "tessera/base/int_math.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/codelets/cost/matmul_cycles.hpp"
#include "tessera/codelets/cost/vector_cycles.hpp"
#include "tessera/planner/internal/estimate.hpp"
#include "tessera/planner/internal/slowest_worker.hpp"
#include "tessera/planner/internal/tile_load.hpp"

// The estimate of GradW: dR[x][y] += dQ[x][z] * S[y][z] at R's non-zeros, in forward naming.
namespace tessera::planner::internal {
namespace {

struct GradWView {
  const Case& c;
  const Cut& cut;
  std::int64_t tiles, meta_bytes, sum_bytes;  // of one bucket
  std::int64_t q_bytes, s_bytes;              // a tile's dense shares
  codelets::ExchangeWidth width;
};

// The number of neighbouring tiles that take the same data, along each dimension. The dimensions
// are mapped to tiles in the order y z x, outer to inner, if buckets travel, otherwise x y z. Parts
// along a dimension are neighbours if no dimension inside it is cut.
struct Consecutive {
  std::int64_t x, y, z;  // tiles in a row that take the same data
};
Consecutive consecutive(const Case& c, Dims parts) {
  const auto if_inner_is_whole = [](std::int64_t inner, std::int64_t count) {
    return inner == 1 ? count : 1;
  };
  if (c.candidate.exchange_buckets)
    return {parts.x, if_inner_is_whole(parts.z * parts.x, parts.y),
            if_inner_is_whole(parts.x, parts.z)};
  return {if_inner_is_whole(parts.y * parts.z, parts.x), if_inner_is_whole(parts.z, parts.y),
          parts.z};
}

GradWView make_view(const Case& c, const Cut& cut, const BucketSize& bucket) {
  const Dims e = cut.share * c.candidate.grain;
  const std::int64_t values = bucket.blocks * c.problem.block.area();
  return {c,
          cut,
          cut.parts.product(),
          bucket.fwd_words * c.word_bytes(),
          values * c.partials_bytes(),
          e.x * e.z * c.input_bytes(),
          e.y * e.z * c.input_bytes(),
          {c.machine.exchange_bytes_per_cycle, c.machine.tiles_per_exchange_bus}};
}

struct OperandBytes {
  std::int64_t q, s;
  std::int64_t sum() const { return q + s; }
};

// Tiles that hold both operands send both at once.
std::int64_t operand_senders(const GradWView& v, OperandBytes bytes) {
  const Dims parts = v.cut.parts, share = v.cut.share, all = v.c.grains;
  const Dims grain = v.c.candidate.grain;
  if (operands_spread(v.c, Pass::GradW)) {
    const std::int64_t z = share.z * grain.z;
    return spread_senders(v.c, all.x * grain.x, share.x * grain.x, z) +
           spread_senders(v.c, all.y * grain.y, share.y * grain.y, z);
  }
  const std::int64_t last_x = all.x - (parts.x - 1) * share.x;
  const std::int64_t last_y = all.y - (parts.y - 1) * share.y;
  const std::int64_t q = most_senders(parts.y, share.x * grain.x, last_x * grain.x);
  const std::int64_t s = most_senders(parts.x, share.y * grain.y, last_y * grain.y);
  return (bytes.q > 0 ? q : 0) + (bytes.s > 0 ? s : 0);
}

OperandBytes fetch_operands(const GradWView& v, PassEstimate& pass, PassForm& form) {
  const Case& c = v.c;
  const Dims share = v.cut.share, all = c.grains, grain = c.candidate.grain;
  const Consecutive row = consecutive(c, v.cut.parts);
  // If operands travel, GradW orders the tiles x y z instead of y z x, so no operand is at home
  // unless both orders are the same.
  const Dims parts = v.cut.parts;
  const bool spread = operands_spread(c, Pass::GradW);
  const bool moved = !c.candidate.exchange_buckets && parts.x > 1 && parts.y * parts.z > 1;
  const OperandBytes bytes = {fetched_bytes(c, {.needed = share.x * share.z,
                                                .all = all.g * all.x * all.z,
                                                .tiles = v.tiles,
                                                .grain_bytes = grain.x * grain.z * c.input_bytes(),
                                                .at_home = parts.y == 1 && !moved && !spread}),
                              fetched_bytes(c, {.needed = share.y * share.z,
                                                .all = all.g * all.y * all.z,
                                                .tiles = v.tiles,
                                                .grain_bytes = grain.y * grain.z * c.input_bytes(),
                                                .at_home = parts.x == 1 && !moved && !spread})};
  // PopLibs takes words to be at home.
  const std::int64_t words = moved && !c.parity() ? v.meta_bytes : 0;
  // The words come from one of the tiles that hold operands.
  const std::int64_t senders = operand_senders(v, bytes) + (moved ? 1 : 0);
  Shared q = shared_rows(bytes.q, share.x * grain.x, parts.y, row.y);
  Shared s = shared_rows(bytes.s, share.y * grain.y, parts.x, row.x);
  q.holds_own = s.holds_own = !moved && !spread;
  if (spread) q.piece_bytes = s.piece_bytes = 0;
  const Cycles cycles = receive_cycles(c, q, v.tiles) + receive_cycles(c, s, v.tiles) +
                        codelets::exchange_cycles(words, v.width) +
                        Cycles(receive_starts(c, senders));
  pass.add(Term::ExchangeOperands, cycles.value, bytes.sum());
  form.fetches = cycles.value > 0;
  return bytes;
}

// Adds the step that rearranges the operands. Returns the bytes held after it: those of the
// rearranged copies if the method rearranges.
OperandBytes rearrange_operands(const GradWView& v, OperandBytes held, PassEstimate& pass) {
  const Case& c = v.c;
  if (c.candidate.grad_w != Method::BlockGradWAmp) {
    pass.add(Term::RearrangeOperands, 0, 0);
    return held;
  }
  const Dims share = v.cut.share, grain = c.candidate.grain;
  const std::int64_t z = share.z * grain.z, workers = c.machine.workers;
  const Cycles cycles =
      codelets::rearrange_cycles(share.x, grain.x, z, c.problem.data_type, workers) +
      codelets::rearrange_cycles(share.y, grain.y, z, c.problem.data_type, workers);
  pass.add(Term::RearrangeOperands, cycles.value, held.sum() + v.q_bytes + v.s_bytes);
  return {v.q_bytes, v.s_bytes};
}

// Adds the exchanges along z: a full cycle, so that every bucket meets every part of the batch.
void exchange_along_z(const GradWView& v, PassEstimate& pass) {
  const std::int64_t rounds = v.cut.parts.z;
  if (rounds == 1) return pass.add(Term::ExchangeAlongZ, 0, 0);
  Cycles cycles;
  if (v.c.candidate.exchange_buckets) {
    cycles = codelets::exchange_cycles(v.meta_bytes + v.sum_bytes, v.width);
  } else if (!v.c.parity()) {
    // The tile that sends is one of the takers, so its bus takes the data at single width.
    cycles = codelets::exchange_cycles(v.q_bytes + v.s_bytes, v.width);
  } else {
    const std::int64_t row = consecutive(v.c, v.cut.parts).z;
    cycles = codelets::broadcast_cycles(v.q_bytes, row, v.tiles, v.width) +
             codelets::broadcast_cycles(v.s_bytes, row, v.tiles, v.width);
  }
  pass.add(Term::ExchangeAlongZ, rounds * (cycles.value + receive_starts(v.c, 1)), 0);
}

// Returns the cycles of the busiest worker of the plain kernels. Each worker has a range [lo, hi)
// of the non-zeros of all rows in order.
std::int64_t busiest_run(const Case& c, const codelets::MatMulKernel& kernel, std::int64_t z,
                         const UniformCounts& counts) {
  const codelets::LinearCycles cycles = codelets::worker_cycles(kernel, z);
  const std::int64_t scan = codelets::expected_scan_cycles(kernel.method, 1, 1, 1).value;
  const std::int64_t all = counts.rows * counts.per_row, per_worker = ceil_div(all, kernel.workers);
  std::int64_t most = 0;
  for (std::int64_t lo = 0; lo < all; lo += per_worker) {
    const std::int64_t hi = std::min(all, lo + per_worker), nonzeros = hi - lo;
    const std::int64_t rows = ceil_div(hi, counts.per_row) - lo / counts.per_row;
    if (!c.parity()) {
      most = std::max(most, scan + kernel.workers * cycles(rows, nonzeros).value);
      continue;
    }
    // PopLibs gives every row all non-zeros and then divides everything by the number of rows.
    const std::int64_t listed_rows = ceil_div(nonzeros, counts.per_row);
    const std::int64_t sum = scan + kernel.workers * cycles(rows, rows * nonzeros).value;
    most = std::max(most, ceil_div(sum, listed_rows));
  }
  return most == 0 ? scan : most;
}

std::int64_t one_round_cycles(const GradWView& v) {
  const Case& c = v.c;
  const Dims parts = v.cut.parts, share = v.cut.share;
  const codelets::MatMulKernel kernel = kernel_of(c, c.candidate.grad_w, c.problem.block);
  const std::int64_t z = share.z * c.candidate.grain.z;
  const UniformCounts counts =
      uniform_counts(ceil_div(share.x, parts.z), share.y, c.problem.density);
  if (kernel.method != Method::BlockGradWAmp) return busiest_run(c, kernel, z, counts);
  const std::int64_t blocks = counts.rows * counts.per_row;
  return codelets::expected_scan_cycles(kernel.method, 1, 1, 1).value +
         codelets::supervisor_load_cycles(kernel, z)(counts.rows, blocks).value +
         kernel.workers * codelets::worker_cycles(kernel, z)(counts.rows, blocks).value;
}

// Returns the non-zeros that the busiest of so many hands gets of the fullest cell. With many for
// each hand, it makes little difference whether the mean is taken before or after rounding up.
double busiest_hand(const BucketSize& bucket, std::int64_t hands) {
  constexpr double kFewPerHand = 6;
  const double even = bucket.fullest.nonzeros / static_cast<double>(hands);
  if (!bucket.scatter || even > kFewPerHand) return std::ceil(even);
  return std::max(even, mean_hand_of_fullest(*bucket.scatter, hands));
}

// Returns the cycles of one round on the fullest tile, which works on the piece of the cell in its
// own bucket or on an even piece in another bucket.
std::int64_t fullest_round_cycles(const GradWView& v, const BucketSize& bucket) {
  const Case& c = v.c;
  const codelets::MatMulKernel kernel = kernel_of(c, c.candidate.grad_w, c.problem.block);
  const std::int64_t grain = c.candidate.grain.z, z = v.cut.share.z * grain;
  TileLoad piece = bucket.fullest;
  const auto pieces = static_cast<double>(v.cut.parts.z);
  piece.lines /= pieces;
  piece.rows = std::min(piece.rows, piece.rows / pieces + (pieces > 1 ? 0.5 : 0));
  if (pieces > 1) piece.nonzeros = busiest_hand(bucket, v.cut.parts.z);
  const std::int64_t scan = codelets::expected_scan_cycles(kernel.method, 1, 1, 1).value;
  if (piece.nonzeros <= 0) return scan;
  const auto load = codelets::supervisor_load_cycles(kernel, z);
  WorkersJob job{.kernel = kernel, .load = piece, .z = v.cut.share.z, .z_grain = grain};
  if (kernel.method != Method::BlockGradWAmp)
    job.busiest = busiest_hand(bucket, v.cut.parts.z * kernel.workers);
  return scan + cycles_at(load, piece) + workers_cycles(job);
}

// Returns the expected cycles of propagation. Either buckets make one step and then return to their
// own tiles, or operands travel to the tiles of the spilled blocks.
std::int64_t propagation(const GradWView& v, const BucketSize& bucket) {
  const Dims parts = v.cut.parts;
  if (v.c.candidate.exchange_buckets)
    return propagation_cycles(v.c, bucket.spill_chance, parts.z + std::max(parts.y, parts.x),
                              v.meta_bytes + v.sum_bytes);
  const std::int64_t bytes = parts.z > 1 ? v.q_bytes + v.s_bytes : std::max(v.q_bytes, v.s_bytes);
  return propagation_cycles(v.c, bucket.spill_chance, parts.z, bytes);
}

// Returns the bytes of a second buffer for operands: operands that arrive, in a shift or in a round
// over z, are stored beside those that are in use.
std::int64_t second_operands(const GradWView& v, OperandBytes held) {
  if (v.c.parity()) return held.sum();  // none for operands that are at home
  const Dims parts = v.cut.parts;
  return (parts.x > 1 || parts.z > 1 ? v.q_bytes : 0) +
         (parts.y > 1 || parts.z > 1 ? v.s_bytes : 0);
}

}  // namespace

PassEstimate estimate_grad_w(const Case& c, const Cut& cut, const BucketSize& bucket) {
  const GradWView v = make_view(c, cut, bucket);
  PassEstimate pass;
  pass.pass = Pass::GradW;
  PassForm form{.pass = Pass::GradW,
                .parts = cut.parts,
                .rearranges = c.candidate.grad_w == Method::BlockGradWAmp,
                .buckets_travel = c.candidate.exchange_buckets,
                .casts = c.types_differ(),
                .arranges_operands = operands_spread(c, Pass::GradW)};
  const OperandBytes fetched = fetch_operands(v, pass, form);
  const OperandBytes held = rearrange_operands(v, fetched, pass);
  exchange_along_z(v, pass);

  const std::int64_t values = bucket.blocks * c.problem.block.area();
  const std::int64_t round = c.parity() ? one_round_cycles(v) : fullest_round_cycles(v, bucket);
  // Buckets that travel are multiplied once at home and then wherever their circle takes them.
  const bool circle = c.candidate.exchange_buckets && !c.parity();
  const std::int64_t at_home = circle ? 1 : cut.parts.z;
  pass.add(Term::Multiply, zeroing_cycles(c, values) + at_home * round, 0);

  // PopLibs swaps the two.
  const std::int64_t kept_sums = c.parity() ? v.meta_bytes : v.sum_bytes;
  const std::int64_t sums = c.types_differ() ? kept_sums : 0;
  pass.add(Term::Propagate, (cut.parts.z - at_home) * round + propagation(v, bucket),
           c.candidate.exchange_buckets ? held.sum() + 2 * (v.meta_bytes + v.sum_bytes)
                                        : sums + held.sum() + second_operands(v, held));

  const bool cast = c.types_differ();
  const Cycles cycles = cast ? codelets::cast_cycles(values, c.problem.partials_type,
                                                     c.problem.data_type, c.machine.workers)
                             : Cycles{};
  pass.add(Term::RoomForSums, 0, sums);
  pass.add(Term::CastSums, cycles.value, sums + (cast ? values * c.input_bytes() : 0));
  pass.counts = counts_of(form);
  return pass;
}

}  // namespace tessera::planner::internal
