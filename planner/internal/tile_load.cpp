#include "tessera/planner/internal/tile_load.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "tessera/codelets/work_split.hpp"

namespace tessera::planner::internal {
namespace {

using codelets::MatMulKernel;

double filled(double lines, double density, double places) {
  return -lines * std::expm1(places * std::log1p(-std::min(density, 1 - 1e-12)));
}

// Returns the median of the largest of n standard normal numbers, accurate to 0.02 from n = 6 on; 0
// for one.
double largest_of(double n) {
  if (n < 2) return 0;
  constexpr double kLogFourPi = 2.5310242469692907;
  constexpr double kMedian = 0.36651292058166435;  // -log(log(2))
  const double root = std::sqrt(2 * std::log(n));
  return root - (std::log(root * root / 2) + kLogFourPi - 2 * kMedian) / (2 * root);
}

// Rows are divided where the running sum of non-zeros passes equal shares. These are the mean and
// the spread, in rows, by which the worst of six workers exceeds its share, if the ends of the
// shares are uniform within the rows.
constexpr double kRowsBeyondShare = 0.6, kSpreadBeyondShare = 0.15;

struct Share {
  std::int64_t z = 0;
  double rows = 0, nonzeros = 0;
};

// Returns the share of the non-empty rows that the last worker gets. Records list their fullest
// rows first, so the last worker's even share of the non-zeros has the most rows. Row lengths are
// binomial and are counted from the shortest up.
double last_share_of_rows(const TileLoad& load, double workers) {
  const double density = std::min(load.density(), 1 - 1e-12), columns = load.columns;
  const double mean = columns * density;
  constexpr double kManyPerRow = 30;
  if (mean > kManyPerRow) {
    // Long rows are nearly normal. The shortest rows that hold a sixth of the non-zeros are more
    // than a sixth of all rows, by the density of the normal distribution at its lower sixth.
    constexpr double kNormalAtSixth = 0.25;
    return 1 / workers + kNormalAtSixth * std::sqrt((1 - density) / mean);
  }
  double chance = std::exp(columns * std::log1p(-density));  // of exactly k non-zeros in a row
  const double any = 1 - chance;
  double rows = 0, missing = mean / workers;
  for (double k = 1; k <= columns; ++k) {
    chance *= (columns - k + 1) / k * density / (1 - density);
    if (chance * k >= missing) return (rows + missing / k) / any;
    rows += chance;
    missing -= chance * k;
  }
  return 1;
}

// Returns two shares of whole rows by weight: that of the worker with the most rows, and that of
// the worker whose rows are divided worst.
std::array<Share, 2> weighted_shares(const WorkersJob& job, double rows, double nonzeros) {
  const TileLoad& load = job.load;
  const auto workers = static_cast<double>(job.kernel.workers);
  const double per_row = nonzeros / rows;
  if (job.records > 1) {
    const double mine = rows / workers + kRowsBeyondShare;
    return {Share{job.z, mine, mine * per_row}, Share{}};
  }
  const double fuller = (load.nonzeros - load.mean) / workers;
  const double cut = largest_of(load.cells) * kSpreadBeyondShare * per_row;
  const double beyond = std::min(per_row, kRowsBeyondShare * per_row + std::hypot(fuller, cut));
  const double mine = load.mean / workers + std::max(beyond, fuller);
  const Share last{job.z, rows * last_share_of_rows(load, workers), nonzeros / workers};
  return {last, Share{job.z, std::ceil(mine / per_row), mine}};
}

// Returns the share if workers get equal rectangles of rows x batch. Nothing then evens out the
// rows.
Share rectangle_share(const WorkersJob& job, std::int64_t rows) {
  thread_local std::vector<codelets::WorkShare> shares;
  const TileLoad& load = job.load;
  const std::int64_t workers = job.kernel.workers;
  codelets::split_between_workers(rows, job.z, workers, {}, shares);
  const auto most =
      std::max_element(shares.begin(), shares.end(), [](const auto& a, const auto& b) {
        return a.rows.size() * a.cols.size() < b.rows.size() * b.cols.size();
      });
  const auto mine = static_cast<double>(most->rows.size());
  const double per_row = (job.records > 1 ? load.nonzeros : load.mean) / std::max(1.0, load.rows);
  const double spread = std::sqrt(mine * per_row * (1 - load.density()));
  const double draws = static_cast<double>(workers) * (job.records > 1 ? 1 : load.cells);
  return {most->cols.size(), mine, mine * per_row + largest_of(draws) * spread};
}

// Returns the cycles of the slowest worker in one record, for an element kernel that divides rows
// and the batch.
double slowest_share(const WorkersJob& job, double rows, double nonzeros) {
  const auto whole_rows = static_cast<std::int64_t>(std::ceil(rows));
  const auto cost = [&](const Share& share) {
    const auto cycles = codelets::worker_cycles(job.kernel, share.z * job.z_grain);
    return share.rows * static_cast<double>(cycles.per_row) +
           std::min(nonzeros, share.nonzeros) * static_cast<double>(cycles.per_nonzero);
  };
  if (whole_rows <= 2 * job.kernel.workers) return cost(rectangle_share(job, whole_rows));
  const auto [most_rows, worst_cut] = weighted_shares(job, rows, nonzeros);
  return std::max(cost(most_rows), cost(worst_cut));
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
      return cost(z, rows, std::max(rows, hands * nonzeros / all.nonzeros));
    }
    case Method::ElementGradW:
    case Method::BlockGradW:
      return cost(z, rows * last_share_of_rows(job.load, workers) + 1,
                  std::ceil(nonzeros / workers));
    case Method::BlockGradWAmp:
      return cost(z, rows, nonzeros);
    case Method::BlockFwd:
    case Method::BlockTranspose:
      return cost((z + kernel.workers - 1) / kernel.workers, rows, nonzeros);
  }
  return 0;
}

}  // namespace

TileLoad cell_load(Dims share, double blocks, const Scatter& scatter) {
  const auto rows = static_cast<double>(share.x), columns = static_cast<double>(share.y);
  const double average = rows * columns * scatter.density;
  const double most = std::max(std::ceil(average), blocks);
  const double density = std::min(1.0, most / (rows * columns));
  // Blocks that come together leave more rows empty, which fewer columns model.
  const double together = std::sqrt(static_cast<double>(scatter.size));
  const double filled_rows = std::ceil(filled(rows, density, columns / together));
  return {.lines = rows,
          .columns = columns,
          .rows = std::min(most, filled_rows),
          .nonzeros = most,
          .mean = average,
          .cells = static_cast<double>(scatter.cells)};
}

TileLoad swapped(const TileLoad& load) {
  TileLoad result = load;
  std::swap(result.lines, result.columns);
  result.rows =
      std::min(load.nonzeros, std::ceil(filled(result.lines, load.density(), result.columns)));
  return result;
}

std::int64_t workers_cycles(const WorkersJob& job) {
  if (job.load.nonzeros <= 0) return 0;  // no worker is started
  // A piece has at least one non-zero. A row that is cut belongs to two pieces.
  const double records = std::min(static_cast<double>(job.records), job.load.nonzeros);
  const double nonzeros = job.load.nonzeros / records;
  const double rows = std::min(nonzeros, (job.load.rows - 1) / records + 1);
  const double loops = records * slowest_worker(job, rows, nonzeros);
  const std::int64_t start = codelets::worker_cycles(job.kernel, job.z * job.z_grain).start;
  return job.kernel.workers * (start + static_cast<std::int64_t>(std::ceil(loops)));
}

std::int64_t cycles_at(const codelets::LinearCycles& formula, const TileLoad& load) {
  return formula.start + static_cast<std::int64_t>(
                             std::ceil(load.rows * static_cast<double>(formula.per_row) +
                                       load.nonzeros * static_cast<double>(formula.per_nonzero)));
}

double mean_hand(double columns, double density, std::int64_t hands) {
  const double mean = columns * density, h = static_cast<double>(hands);
  if (density >= 1) return std::ceil(columns / h);
  // With so many non-zeros, each remainder 0 .. hands - 1 is equally likely.
  if (mean > 4 * h) return mean / h + (h - 1) / (2 * h);
  double chance = std::exp(columns * std::log1p(-density));  // of exactly k non-zeros in a row
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
