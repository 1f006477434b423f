#include "tessera/planner/internal/slowest_worker.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "tessera/codelets/work_split.hpp"
#include "tessera/planner/internal/capacity.hpp"
#include "tessera/planner/internal/piece_ends.hpp"
#include "tessera/planner/internal/tile_load.hpp"

namespace tessera::planner::internal {
namespace {

using codelets::MatMulKernel;

// Returns the standard normal quantile of p, with an error below 0.0005 (Abramowitz and Stegun,
// formula 26.2.23).
double normal_quantile(double p) {
  const double t = std::sqrt(-2 * std::log(std::min(p, 1 - p)));
  const double upper = t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                               (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
  return p < 0.5 ? -upper : upper;
}

// Rows are divided where the running sum of non-zeros passes equal shares. These are the mean and
// the spread, in rows, by which the worst of six workers exceeds its share, if the ends of the
// shares are uniform within the rows.
constexpr double kRowsBeyondShare = 0.6, kSpreadBeyondShare = 0.15;

struct Share {
  std::int64_t z = 0;
  double rows = 0, nonzeros = 0;
};

// A piece of a cell in one bucket: its sides as the kernel walks it, and its counts. A worker waits
// at the end of every piece for the slowest one.
struct Piece {
  double lines = 0, columns = 0;
  double rows = 0, nonzeros = 0;
  double records = 1;  // of the cell, all alike

  double density() const { return std::min(nonzeros / (lines * columns), 1 - 1e-12); }
  double per_row() const { return nonzeros / rows; }
};

// Cells are cut into pieces row after row, in forward naming. The rows of GradA's own words are
// columns of R, of which every piece has nearly all.
Piece piece_of(const WorkersJob& job) {
  const TileLoad& load = job.load;
  // A piece has at least one non-zero.
  const double records = std::min(static_cast<double>(job.records), load.nonzeros);
  Piece piece{load.lines, load.columns, load.rows, load.nonzeros / records, records};
  if (job.kernel.method == codelets::Method::ElementGradA) {
    piece.columns /= records;
    if (records > 1) piece.rows = filled(piece.lines, piece.density(), piece.columns);
  } else {
    piece.lines /= records;
    piece.rows = (load.rows - 1) / records + 1;  // a row that is cut belongs to two pieces
  }
  piece.rows = std::clamp(piece.rows, 1.0, piece.nonzeros);
  return piece;
}

// Returns the share of the non-empty rows that the last worker gets. Records list their fullest
// rows first, so the last worker's even share of the non-zeros has the most rows. Row lengths are
// binomial and are counted from the shortest up.
double last_share_of_rows(const Piece& piece, double workers) {
  const double density = piece.density(), columns = piece.columns;
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
std::array<Share, 2> weighted_shares(const WorkersJob& job, const Piece& piece) {
  const TileLoad& load = job.load;
  const auto workers = static_cast<double>(job.kernel.workers);
  const double per_row = piece.per_row();
  const Share last{job.z, piece.rows * last_share_of_rows(piece, workers),
                   piece.nonzeros / workers};
  const double records = piece.records;
  const double mean = load.mean / records / workers;
  const double fuller = piece.nonzeros / workers - mean;
  const double cut = largest_normal(load.cells, kMedianOfLargest) * kSpreadBeyondShare * per_row /
                     std::sqrt(records);
  const double longest = per_row + std::sqrt(per_row * (1 - piece.density()));
  const double beyond = std::min(longest, kRowsBeyondShare * per_row + std::hypot(fuller, cut));
  const double mine = mean + std::max(beyond, fuller);
  const double rows = records > 1 ? mine / per_row : std::ceil(mine / per_row);
  return {last, Share{job.z, rows, mine}};
}

// Returns the mean of the standard normal order statistic `place` of `count`, 0 for the largest, by
// Blom's formula.
double normal_order(std::int64_t place, std::int64_t count) {
  const double above = (static_cast<double>(place) + 0.625) / (static_cast<double>(count) + 0.25);
  return normal_quantile(1 - above);
}

// The statistics of small counts, because the innermost loop of the search asks for them.
class NormalOrders {
 public:
  NormalOrders() {
    for (std::size_t count = 1; count < kCounts; ++count)
      for (std::size_t place = 0; place < count; ++place)
        kept_[count][place] = normal_order(std::int64_t(place), std::int64_t(count));
  }
  double at(std::int64_t place, std::int64_t count) const {
    return count < std::int64_t{kCounts} ? kept_[std::size_t(count)][std::size_t(place)]
                                         : normal_order(place, count);
  }

 private:
  static constexpr std::size_t kCounts = 16;
  std::array<std::array<double, kCounts>, kCounts> kept_{};
};

// The lengths of the rows of a piece with few rows, fullest first.
using RowLengths = std::vector<double>;

// Appends the mean lengths of that many whole rows.
void append_whole_rows(std::int64_t rows, double per_row, double spread, RowLengths& lengths) {
  static const NormalOrders orders;
  for (std::int64_t i = 0; i < rows; ++i)
    lengths.push_back(std::max(0.0, per_row + orders.at(i, rows) * spread));
}

// Appends the rows of a piece that is `rows` rows long and begins `phase` of a row behind a row's
// begin. A part of a row in which no non-zero is expected belongs to the piece's other rows; there
// is `fullest` times as much in the fullest cell, whose rows these are.
void append_cut_rows(double rows, double phase, double per_row, double spread, double fullest,
                     RowLengths& lengths) {
  const double head = std::min(rows, 1 - phase);
  const double whole = std::floor(rows - head), tail = rows - head - whole;
  append_whole_rows(static_cast<std::int64_t>(whole), per_row, spread, lengths);
  for (const double part : {std::max(head, tail), std::min(head, tail)}) {
    const double length = part * per_row;
    if (lengths.empty() || length * fullest >= 0.5)
      lengths.push_back(length);
    else
      lengths.front() += length;
  }
}

// The amounts by which the slowest of all cells exceeds the average one.
struct Excess {
  double fuller = 0;  // non-zeros of the fullest cell, as a part of the average
  double spread = 0;  // non-zeros by which a row exceeds its mean in the worst cell
};

// Returns the shares of rows x batch of a piece, whose rows count by their lengths if they are
// many. Those of few rows are kept: a search asks for the same ones again and again. The list
// belongs to the thread, until its next call. Allocates until the lists have grown.
std::span<const codelets::WorkShare> shares_of(const RowLengths& lengths, std::int64_t z,
                                               std::int64_t workers) {
  struct Entry {
    std::int64_t rows = -1, z = 0, workers = 0;
    std::vector<codelets::WorkShare> shares;
  };
  constexpr std::size_t kEntries = 512;
  thread_local std::array<Entry, kEntries> entries;
  thread_local std::vector<codelets::WorkShare> weighted;
  thread_local std::vector<std::int64_t> weights;
  const std::int64_t rows = std::ssize(lengths);
  weights.clear();
  if (codelets::splits_by_weight(rows, workers)) {
    for (const double length : lengths) weights.push_back(std::llround(length));
    codelets::split_between_workers(rows, z, workers, weights, weighted);
    return weighted;
  }
  Entry& kept = entries[std::size_t(rows * 31 + z) % kEntries];
  if (kept.rows != rows || kept.z != z || kept.workers != workers) {
    kept.rows = -1;
    codelets::split_between_workers(rows, z, workers, {}, kept.shares);
    kept.rows = rows, kept.z = z, kept.workers = workers;
  }
  return kept.shares;
}

// Returns the cycles of the slowest worker if workers get rectangles of rows x batch. Rows are in
// order of length, so the first rectangles are the fullest; narrow rectangles run other loops than
// wide ones.
template <class Cost>
double slowest_rectangle(const WorkersJob& job, const RowLengths& lengths, const Excess& excess,
                         const Cost& cost) {
  double slowest = 0;
  for (const codelets::WorkShare& share : shares_of(lengths, job.z, job.kernel.workers)) {
    const auto rows = static_cast<double>(share.rows.size());
    const double sum =
        std::accumulate(lengths.begin() + share.rows.begin, lengths.begin() + share.rows.end, 0.0);
    const double fuller = sum * excess.fuller;
    const double free_rows = rows * (1 - rows / static_cast<double>(lengths.size()));
    const double beyond = std::sqrt(fuller * fuller + free_rows * excess.spread * excess.spread);
    slowest = std::max(slowest, cost({share.cols.size(), rows, std::max(rows, sum + beyond)}));
  }
  return slowest;
}

// Returns the mean of that over the pieces of a cell.
template <class Cost>
double slowest_rectangle(const WorkersJob& job, const Piece& piece, const Cost& cost) {
  // The spread of the sum of the fullest rows, as a part of that of as many random rows.
  constexpr double kSpreadOfFullest = 0.65;
  thread_local RowLengths lengths;
  const TileLoad& load = job.load;
  const bool cuts_rows = piece.records > 1 && piece.columns == load.columns;
  const double rows = cuts_rows ? load.rows / piece.records : std::ceil(piece.rows);
  const double mean = std::max(load.mean, 1e-3 * load.nonzeros);  // a request may say density 0
  const double per_row = mean / piece.records / rows;
  const double spread = std::sqrt(per_row * (1 - piece.density()));
  const Excess excess{load.nonzeros / mean - 1, kSpreadOfFullest *
                                                    largest_normal(load.cells, kMedianOfLargest) *
                                                    spread / std::sqrt(piece.records)};
  lengths.clear();
  if (!cuts_rows) {
    append_whole_rows(static_cast<std::int64_t>(rows), per_row, spread, lengths);
    return slowest_rectangle(job, lengths, excess, cost);
  }
  const double mean_density = std::min(1.0, mean / (load.lines * load.columns));
  // A single cell has its ends on either side, so that none is known.
  const double apart = load.cells > 1 ? std::sqrt(rows * (1 - mean_density) / per_row) : rows;
  constexpr std::int64_t kFewPieces = 6;  // stand for all
  const PieceEnds ends(std::min<std::int64_t>(std::llround(piece.records), kFewPieces), rows,
                       apart);
  return mean_of_pieces(ends, [&](const Stretch& at) {
    lengths.clear();
    append_cut_rows(at.size(), at.begin - std::floor(at.begin), per_row * rows / at.size(), spread,
                    1 + excess.fuller, lengths);
    return slowest_rectangle(job, lengths, excess, cost);
  });
}

// Returns the cycles of the slowest worker in one piece, for an element kernel that divides rows
// and the batch.
double slowest_share(const WorkersJob& job, const Piece& piece) {
  const auto cost = [&](const Share& share) {
    const auto cycles = codelets::worker_cycles(job.kernel, share.z * job.z_grain);
    return share.rows * static_cast<double>(cycles.per_row) +
           std::min(piece.nonzeros, share.nonzeros) * static_cast<double>(cycles.per_nonzero);
  };
  if (std::ceil(piece.rows) <= static_cast<double>(2 * job.kernel.workers))
    return slowest_rectangle(job, piece, cost);
  const auto [most_rows, worst_cut] = weighted_shares(job, piece);
  return std::max(cost(most_rows), cost(worst_cut));
}

double slowest_worker(const WorkersJob& job, const Piece& piece) {
  using codelets::Method;
  const MatMulKernel& kernel = job.kernel;
  const auto workers = static_cast<double>(kernel.workers);
  const auto cost = [&](std::int64_t z, double rows, double nonzeros) {
    const auto cycles = codelets::worker_cycles(kernel, z);
    return rows * static_cast<double>(cycles.per_row) +
           nonzeros * static_cast<double>(cycles.per_nonzero);
  };
  const std::int64_t z = job.z * job.z_grain;
  switch (kernel.method) {
    case Method::ElementFwd:
    case Method::ElementGradA:
      return slowest_share(job, piece);
    case Method::ElementTranspose: {
      const TileLoad& all = job.load;
      const double hands = all.lines * mean_hand(all.columns, all.density(), kernel.workers);
      return cost(z, piece.rows, std::max(piece.rows, hands * piece.nonzeros / all.nonzeros));
    }
    case Method::ElementGradW:
    case Method::BlockGradW:
      return cost(z, piece.rows * last_share_of_rows(piece, workers) + 1,
                  job.busiest > 0 ? job.busiest : std::ceil(piece.nonzeros / workers));
    case Method::BlockGradWAmp:
      return cost(z, piece.rows, piece.nonzeros);
    case Method::BlockFwd:
    case Method::BlockTranspose:
      return cost((z + kernel.workers - 1) / kernel.workers, piece.rows, piece.nonzeros);
  }
  return 0;
}

}  // namespace

std::int64_t workers_cycles(const WorkersJob& job) {
  if (job.load.nonzeros <= 0) return 0;  // no worker is started
  const double records = std::min(static_cast<double>(job.records), job.load.nonzeros);
  const double loops = records * slowest_worker(job, piece_of(job));
  const std::int64_t start = codelets::worker_cycles(job.kernel, job.z * job.z_grain).start;
  return job.kernel.workers * (start + static_cast<std::int64_t>(std::ceil(loops)));
}

}  // namespace tessera::planner::internal
