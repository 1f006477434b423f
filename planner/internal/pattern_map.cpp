#include "tessera/planner/internal/pattern_map.hpp"

#include <algorithm>
#include <cmath>

#include "tessera/base/dims.hpp"
#include "tessera/base/int_math.hpp"

namespace tessera::planner::internal {

PatternMap::PatternMap(const PatternStats& stats, BlockShape used)
    : before_(stats.before),
      rows_(std::ssize(stats.row_counts) * (stats.block.rows / used.rows)),
      cols_(std::ssize(stats.col_counts) * (stats.block.cols / used.cols)),
      bin_{stats.bin.rows * (stats.block.rows / used.rows),
           stats.bin.cols * (stats.block.cols / used.cols)},
      together_(static_cast<double>(stats.block.area() / used.area())),
      bins_are_blocks_(stats.bin == BlockShape{1, 1}),
      bin_cols_(stats.bin_cols()) {
  if (known()) unevenness_ = std::max(1.0, unevenness());
}

double PatternMap::unevenness() const {
  const auto width = static_cast<std::size_t>(bin_cols_ + 1);
  double bins = 0, sum = 0, squares = 0;
  for (std::size_t i = width + 1; i < before_.size(); ++i) {
    if (i % width == 0) continue;
    const auto n = static_cast<double>(before_[i] - before_[i - 1] - before_[i - width] +
                                       before_[i - width - 1]);
    bins += 1, sum += n, squares += n * n;
  }
  return sum == 0 ? 0 : squares / sum - sum / bins;
}

std::int64_t PatternMap::most_in_bins(const Edges& rows, const Edges& cols) const {
  const std::int64_t width = bin_cols_ + 1;
  const auto end = [](const Edges& edges, std::size_t i) {
    return edges.bin[i] + (edges.part[i] > 0 ? 1 : 0);
  };
  std::int64_t most = 0;
  for (std::size_t i = 1; i < rows.bin.size(); ++i) {
    const std::int64_t* top = &before_[std::size_t(rows.bin[i - 1] * width)];
    const std::int64_t* bottom = &before_[std::size_t(end(rows, i) * width)];
    for (std::size_t j = 1; j < cols.bin.size(); ++j) {
      const std::int64_t left = cols.bin[j - 1], right = end(cols, j);
      most = std::max(most, bottom[right] - bottom[left] - top[right] + top[left]);
    }
  }
  return most;
}

PatternMap::Edges PatternMap::edges(std::int64_t count, std::int64_t bin,
                                    std::int64_t parts) const {
  Edges result;
  const std::int64_t bins = ceil_div(count, bin);
  std::int64_t cut = 0;
  for (std::int64_t i = 0; i <= parts; ++i) {
    const std::int64_t at = i == parts ? count : share_of(count, 1, parts, i).begin;
    const std::int64_t b = std::min(at / bin, bins - 1);
    const std::int64_t length = std::min(bin, count - b * bin);
    result.bin.push_back(b);
    result.part.push_back(static_cast<double>(at - b * bin) / static_cast<double>(length));
    cut += at % bin != 0 && at != count;
  }
  // Every cut is an edge of two cells.
  const double ends = 2.0 * static_cast<double>(cut) / static_cast<double>(parts);
  result.uncertain = ends * static_cast<double>(bin * parts) / static_cast<double>(count);
  return result;
}

// Returns the blocks in the first i shares of rows and j shares of columns. Blocks are assumed to
// be spread evenly within a bin.
double PatternMap::before(const Edges& rows, std::int64_t i, const Edges& cols,
                          std::int64_t j) const {
  const std::int64_t width = bin_cols_ + 1, r = rows.bin[std::size_t(i)];
  const std::int64_t corner = r * width + cols.bin[std::size_t(j)];
  const auto at = [&](std::int64_t place) {
    return static_cast<double>(before_[static_cast<std::size_t>(place)]);
  };
  const double down = rows.part[std::size_t(i)], right = cols.part[std::size_t(j)];
  const double top = at(corner) + right * (at(corner + 1) - at(corner));
  const double bottom = at(corner + width) + right * (at(corner + width + 1) - at(corner + width));
  return top + down * (bottom - top);
}

FullestCell PatternMap::fullest(std::int64_t x_parts, std::int64_t y_parts) {
  const auto [place, is_new] = kept_.try_emplace(x_parts * (cols_ + 1) + y_parts);
  FullestCell& cell = place->second;
  if (!is_new) return cell;
  const Edges rows = edges(rows_, bin_.rows, x_parts), cols = edges(cols_, bin_.cols, y_parts);
  double most = 0;
  std::vector<double> above(static_cast<std::size_t>(y_parts + 1)), here(above.size());
  for (std::int64_t i = 1; i <= x_parts; ++i) {
    for (std::int64_t j = 0; j <= y_parts; ++j) here[std::size_t(j)] = before(rows, i, cols, j);
    for (std::size_t j = 1; j < here.size(); ++j)
      most = std::max(most, here[j] - here[j - 1] - above[j] + above[j - 1]);
    above.swap(here);
  }
  // A block of a bin that is cut is either in the cell or not, so its variance is at most a
  // quarter.
  const double doubtful =
      bins_are_blocks_ ? 0 : std::min(1.0, rows.uncertain + cols.uncertain) * most;
  cell = {most * together_, together_ * std::sqrt(doubtful * unevenness_ / 4),
          together_ * static_cast<double>(most_in_bins(rows, cols))};
  return cell;
}

}  // namespace tessera::planner::internal
