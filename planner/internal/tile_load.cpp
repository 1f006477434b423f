#include "tessera/planner/internal/tile_load.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tessera/codelets/work_split.hpp"

namespace tessera::planner::internal {
namespace {

using codelets::MatMulKernel;

double filled(double lines, double density, double places) {
  return -lines * std::expm1(places * std::log1p(-std::min(density, 1 - 1e-12)));
}

// Rows are cut where the running sum of non-zeros passes equal shares: the worst of six cuts is
// this far beyond its share, in rows. Mean over uniform ends inside the cut rows.
constexpr double kRowsBeyondShare = 0.6;

// The slowest worker of one record of an element kernel that shares out rows and the batch.
double slowest_share(const WorkersJob& job, double rows, double nonzeros) {
  const std::int64_t workers = job.kernel.workers;
  const double per_row = rows > 0 ? nonzeros / rows : 0;
  const auto whole_rows = static_cast<std::int64_t>(std::ceil(rows));
  const auto cost = [&](std::int64_t z, double my_rows) {
    const auto cycles = codelets::worker_cycles(job.kernel, z * job.z_grain);
    return my_rows * (static_cast<double>(cycles.per_row) +
                      per_row * static_cast<double>(cycles.per_nonzero));
  };
  if (whole_rows > 2 * workers)
    return cost(job.z, rows / static_cast<double>(workers) + kRowsBeyondShare);
  thread_local std::vector<codelets::WorkShare> shares;
  codelets::split_between_workers(whole_rows, job.z, workers, {}, shares);
  double most = 0;
  for (const codelets::WorkShare& s : shares)
    most = std::max(most, cost(s.cols.size(), static_cast<double>(s.rows.size())));
  return most;
}

double slowest_worker(const WorkersJob& job, double rows, double nonzeros) {
  using codelets::Method;
  const MatMulKernel& kernel = job.kernel;
  const auto workers = static_cast<double>(kernel.workers);
  const auto cost = [&](std::int64_t z, double my_rows, double mine) {
    const auto cycles = codelets::worker_cycles(kernel, z);
    return my_rows * static_cast<double>(cycles.per_row) +
           mine * static_cast<double>(cycles.per_nonzero);
  };
  const std::int64_t z = job.z * job.z_grain;
  switch (kernel.method) {
    case Method::ElementFwd:
    case Method::ElementGradA:
      return slowest_share(job, rows, nonzeros);
    case Method::ElementTranspose: {
      const TileLoad& all = job.load;
      const double hands = all.lines * mean_hand(all.columns, all.density(), kernel.workers);
      return cost(z, rows, hands * nonzeros / all.nonzeros);
    }
    case Method::ElementGradW:
    case Method::BlockGradW:
      return cost(z, rows / workers + 1, std::ceil(nonzeros / workers));
    case Method::BlockGradWAmp:
      return cost(z, rows, nonzeros);
    case Method::BlockFwd:
    case Method::BlockTranspose:
      return cost((z + kernel.workers - 1) / kernel.workers, rows, nonzeros);
  }
  return 0;
}

}  // namespace

TileLoad fullest_cell(Dims share, Scatter scatter) {
  scatter.confidence = 0.5;
  const auto rows = static_cast<double>(share.x), columns = static_cast<double>(share.y);
  const double average = std::ceil(rows * columns * scatter.density);
  const double most = std::max(average, static_cast<double>(room_for_every_cell(scatter)));
  const double density = most / (rows * columns);
  return {rows, columns, std::min(most, std::ceil(filled(rows, density, columns))), most};
}

TileLoad swapped(const TileLoad& load) {
  TileLoad result{load.columns, load.lines, 0, load.nonzeros};
  result.rows =
      std::min(load.nonzeros, std::ceil(filled(result.lines, load.density(), result.columns)));
  return result;
}

std::int64_t workers_cycles(const WorkersJob& job) {
  if (job.load.nonzeros <= 0) return 0;  // no worker is started
  const auto records = static_cast<double>(job.records);
  // A row that is cut belongs to two pieces.
  const double rows = job.load.rows / records + (records > 1 ? 0.5 : 0);
  const double loops = records * slowest_worker(job, rows, job.load.nonzeros / records);
  const std::int64_t start = codelets::worker_cycles(job.kernel, job.z * job.z_grain).start;
  return job.kernel.workers * (start + static_cast<std::int64_t>(std::ceil(loops)));
}

double mean_hand(double columns, double density, std::int64_t hands) {
  const double mean = columns * density, h = static_cast<double>(hands);
  if (density >= 1) return std::ceil(columns / h);
  // So many that the remainder is any of 0 .. hands - 1.
  if (mean > 4 * h) return mean / h + (h - 1) / (2 * h);
  double chance = std::exp(columns * std::log1p(-density));  // of exactly k
  double sum = 0;
  const double last = std::min(columns, mean + 8 * std::sqrt(mean) + 8);
  for (double k = 0; k < last;) {
    chance *= (columns - k) / (k + 1) * density / (1 - density);
    k += 1;
    sum += chance * std::ceil(k / h);
  }
  return sum;
}

}  // namespace tessera::planner::internal
