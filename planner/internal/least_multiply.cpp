#include "tessera/planner/internal/least_multiply.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tessera/base/int_math.hpp"
#include "tessera/codelets/cost/matmul_cycles.hpp"
#include "tessera/planner/internal/tile_load.hpp"

namespace tessera::planner::internal {
namespace {

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

// The least cycles for each grain of z that a worker spends on a row and on a non-zero.
struct LeastRates {
  double row = std::numeric_limits<double>::max(), nonzero = row;
};

// One and two grains have loops of their own. Those of more grains cost a constant, and as much
// again for every two grains, so that most grains cost least for each of them.
LeastRates least_rates(const codelets::MatMulKernel& kernel, const Least& v) {
  LeastRates rates;
  for (const std::int64_t grains : {std::int64_t{1}, std::int64_t{2}, v.most_z / 2 * 2, v.most_z}) {
    if (grains < 1 || grains > v.most_z) continue;
    const codelets::LinearCycles at = codelets::worker_cycles(kernel, grains * v.grain.z);
    rates.row = std::min(rates.row, double(at.per_row) / double(grains));
    rates.nonzero = std::min(rates.nonzero, double(at.per_nonzero) / double(grains));
  }
  return rates;
}

// Returns a bound of the rows of all pieces of a cell, each of which is in one bucket.
double rows_of_pieces(const codelets::MatMulKernel& kernel, const Least& v) {
  const auto rows = double(v.counts.rows), blocks = double(v.counts.total);
  if (v.hi.z == 1 || kernel.poplibs_estimate) return rows;
  if (kernel.method == Method::ElementGradA) {
    // A piece has a part of the columns and nearly all rows, but no more than non-zeros.
    const double pieces = std::min(double(v.lo.z), blocks);
    const double of_all = pieces * filled(double(v.share.x), v.density, double(v.share.y) / pieces);
    return std::max(rows, std::min(blocks, std::floor(of_all)));
  }
  // A part of a row at either end of a piece, with less than half a non-zero, is not counted.
  return rows * std::max(0.0, 1 - double(v.hi.z) / blocks);
}

// Returns a bound of workers * busiest worker, where workers divide rows x z grains: the sum over
// all workers.
std::int64_t shared_rows(const codelets::MatMulKernel& kernel, const Least& v) {
  if (v.counts.rows == 0) return 0;  // no worker is started
  const auto least = least_worker(kernel, 1, std::min<std::int64_t>(v.most_z, 2), v.grain.z);
  const LeastRates rates = least_rates(kernel, v);
  const auto z = double(v.share.z);
  const double of_rows =
      std::max(double(v.counts.rows * least.per_row), rows_of_pieces(kernel, v) * z * rates.row);
  return kernel.workers * least.start +
         std::int64_t(of_rows + double(v.counts.total) * z * rates.nonzero);
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

}  // namespace

std::int64_t least_multiply(const Case& c, Method method, const Least& v) {
  const codelets::MatMulKernel kernel = kernel_of(c, method, c.problem.block);
  const std::int64_t blocks = v.counts.total;
  const std::int64_t pieces = c.parity() ? v.lo.z : std::min(v.lo.z, blocks);
  const std::int64_t scan = codelets::expected_scan_cycles(method, pieces, pieces, 1).value;
  if (blocks == 0 && !c.parity()) return scan;
  const auto load = codelets::supervisor_load_cycles(kernel, v.grain.z);
  const std::int64_t loads = load(v.counts.rows, blocks).value;
  if (method == Method::ElementTranspose) return scan + dealt_rows(c, kernel, v);
  if (c.problem.is_element_wise()) return scan + shared_rows(kernel, v);
  // Workers share columns of the batch; PopSparse's shares are whole grains.
  const std::int64_t unit = c.parity() ? v.grain.z : 1, units = v.grain.z / unit;
  const std::int64_t z = ceil_div(v.share.z * units, kernel.workers);
  const auto worker = least_worker(kernel, z, v.most_z * units, unit);
  return scan + loads + kernel.workers * worker(0, blocks).value;
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

}  // namespace tessera::planner::internal
