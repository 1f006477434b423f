#include "tessera/planner/internal/tile_load.hpp"

#include <algorithm>
#include <cmath>

namespace tessera::planner::internal {

double filled(double lines, double density, double places) {
  return -lines * std::expm1(places * std::log1p(-std::min(density, 1 - 1e-12)));
}

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
