#include "tessera/partitioner/forecast.hpp"

#include <fmt/format.h>
#include <math.h>  // lgamma_r: std::lgamma writes a global

#include <algorithm>
#include <cmath>

#include "tessera/base/error.hpp"
#include "tessera/codelets/bucket_layout.hpp"

namespace tessera::partitioner {
namespace {

double log_factorial(double n) {
  int sign = 0;
  return lgamma_r(n + 1, &sign);
}

// log of "n choose k"; minus infinity where there is no way.
double log_choose(double n, double k) {
  if (k < 0 || k > n) return -INFINITY;
  return log_factorial(n) - log_factorial(k) - log_factorial(n - k);
}

struct Moments {
  double mean = 0, variance = 0;
  double lines = 0;  // at most
};

// Probability that a whole number with these moments is at most `most`.
double at_most(const Moments& m, double most) {
  if (m.variance < 1e-9) return m.mean <= most + 0.5 ? 1.0 : 0.0;
  return 0.5 * std::erfc(-(most + 0.5 - m.mean) / std::sqrt(2 * m.variance));
}

// Lines (rows, say) in use when `blocks` lie anywhere in `lines` of `places` each: from the chances
// that one line, and two lines, are empty.
Moments lines_in_use(double lines, double places, double blocks) {
  const double all = log_choose(lines * places, blocks);
  const double one = std::exp(log_choose((lines - 1) * places, blocks) - all);
  const double two = lines > 1 ? std::exp(log_choose((lines - 2) * places, blocks) - all) : 0;
  const double variance = lines * one * (1 - one) + lines * (lines - 1) * (two - one * one);
  return {lines * (1 - one), std::max(0.0, variance), lines};
}

// Rows in one of the stretches of `stretch` blocks that the `blocks` of a cell, in rows of
// `places`, are cut into. Rows follow each other like the renewals of a process whose steps are the
// lengths of rows in use: per block, 1 / mean of them, with variance / mean^3; where in a row the
// stretch begins adds a sixth. What the whole cell has in rows is shared with the other stretches.
Moments rows_of_stretch(const Moments& rows, double places, double blocks, double stretch) {
  if (stretch >= blocks) return rows;
  const double share = (stretch - 1) / (blocks - 1), length = blocks / rows.mean;
  // E[length^2] of a row that may be empty is that of one in use times the chance to be in use.
  const double of_any = length * rows.mean / rows.lines, chance = of_any / places;
  const double square = (of_any * (1 - chance) + of_any * of_any) * rows.lines / rows.mean;
  const double per_block = std::max(0.0, square - length * length) / (length * length * length);
  constexpr double kPhase = 1.0 / 6;
  return {1 + share * (rows.mean - 1),
          stretch * per_block * (1 - share) + kPhase + share * share * rows.variance, rows.lines};
}

// One kind of cell, and the room of its buckets.
class Cell {
 public:
  Cell(const TileGrid& grid, Range x, Range y)
      : grid_(grid),
        rows_(static_cast<double>(x.size() / grid.block.rows)),
        cols_(static_cast<double>(y.size() / grid.block.cols)) {
    const codelets::RecordShape forward{grid.block.is_element(), grid.grad_w, grid.workers};
    const codelets::RecordShape grad_a{true, false, grid.workers};
    words_ = static_cast<double>(grid.meta_words - codelets::kEndMarkerWords -
                                 codelets::fixed_record_words(forward));
    grad_a_words_ = static_cast<double>(grid.grad_a_words - codelets::kEndMarkerWords -
                                        codelets::fixed_record_words(grad_a));
  }

  // Probability that nothing has to leave, of a matrix of `places` with `blocks` in it.
  double fits(double places, double blocks) const {
    const double area = rows_ * cols_, share = area / places;
    const double mean = blocks * share;
    const double spread =
        std::sqrt(mean * (1 - share) * (1 - blocks / places) * places / std::max(1.0, places - 1));
    // Beyond twelve deviations nothing is left that a double could add.
    const double first = std::max({0.0, blocks - (places - area), std::floor(mean - 12 * spread)});
    const double last = std::min({area, blocks, std::ceil(mean + 12 * spread)});
    const double all = log_choose(places, blocks);
    double sum = 0;
    for (double n = first; n <= last; ++n)
      sum += std::exp(log_choose(area, n) + log_choose(places - area, blocks - n) - all) * holds(n);
    return std::min(1.0, sum);
  }

 private:
  // Probability that buckets hold a cell of n blocks.
  double holds(double n) const {
    constexpr double kRowWords = codelets::kWords<codelets::OutputEntry>;
    if (n == 0) return 1;
    const auto z = static_cast<double>(grid_.splits.z);
    const double stretch = std::ceil(n / z), buckets = std::ceil(n / stretch);
    if (stretch > static_cast<double>(grid_.blocks)) return 0;
    const Moments rows = rows_of_stretch(lines_in_use(rows_, cols_, n), cols_, n, stretch);
    double one = at_most(rows, std::floor((words_ - stretch) / kRowWords));
    if (grid_.separate_grad_a) {
      const Moments cols = lines_in_use(cols_, std::max(1.0, std::round(rows_ / z)), stretch);
      one *= at_most(cols, std::floor((grad_a_words_ - 2 * stretch) / kRowWords));
    }
    return std::pow(one, buckets);
  }

  const TileGrid& grid_;
  double rows_, cols_, words_ = 0, grad_a_words_ = 0;
};

void require(bool good, const char* name, double value, const char* legal) {
  if (good) return;
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("forecast: {} is {}; it must be {}", name, value, legal));
}

}  // namespace

double spill_probability(const TileGrid& grid, double density) {
  check(grid);
  require(density >= 0 && density <= 1, "density", density, "between 0 and 1");
  const double places = static_cast<double>(grid.size.x / grid.block.rows) *
                        static_cast<double>(grid.size.y / grid.block.cols);
  const double blocks = std::round(density * places);
  // All cells are alike but for the last of each direction.
  double log_fits = 0;
  for (const bool last_x : {false, true})
    for (const bool last_y : {false, true}) {
      const std::int64_t x = last_x ? 1 : grid.splits.x - 1, y = last_y ? 1 : grid.splits.y - 1;
      if (x * y == 0) continue;
      const Cell cell(grid, grid.x_range(last_x ? grid.splits.x - 1 : 0),
                      grid.y_range(last_y ? grid.splits.y - 1 : 0));
      log_fits += static_cast<double>(x * y) * std::log(cell.fits(places, blocks));
    }
  return std::clamp(std::abs(std::expm1(log_fits)), 0.0, 1.0);
}

double capacity_factor_for(const TileGrid& grid, double density, double wanted) {
  require(wanted > 0 && wanted < 1, "the wanted probability", wanted, "between 0 and 1");
  const auto enough = [&](std::int64_t percent) {
    const double factor = static_cast<double>(percent) / 100;
    return spill_probability(with_capacity(grid, factor), density) <= wanted;
  };
  constexpr std::int64_t kMostPercent = std::int64_t{1} << 40;
  std::int64_t below = 0, fits = 100;
  while (!enough(fits) && fits < kMostPercent) {
    below = fits;
    fits *= 2;
  }
  while (fits - below > 1) {
    const std::int64_t middle = below + (fits - below) / 2;
    (enough(middle) ? fits : below) = middle;
  }
  return static_cast<double>(fits) / 100;
}

}  // namespace tessera::partitioner
