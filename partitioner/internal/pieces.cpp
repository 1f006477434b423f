#include "tessera/partitioner/internal/pieces.hpp"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <utility>

#include "tessera/sparse/check.hpp"

namespace tessera::partitioner::internal {
namespace {

// Returns the first position in [begin, end) whose column is not below `bound`. Rows are short and
// their borders fall anywhere, so a search without branches is faster than one that relies on
// branch prediction: an encode is 1.2 times as fast at 8 partitions.
std::int64_t first_not_below(const std::int32_t* col, std::int64_t begin, std::int64_t end,
                             std::int64_t bound) {
  const std::int32_t* at = col + begin;
  for (std::int64_t n = end - begin; n > 0;) {
    const std::int64_t half = (n + 1) / 2;
    at += at[half - 1] < bound ? half : 0;
    n -= half;
  }
  return at - col;
}

// Cuts the rows of one x partition after the other; its scratch lists are used again.
class PartCutter {
 public:
  PartCutter(const Pattern& pattern, const TileGrid& grid)
      : pattern_(pattern),
        x_step_(ceil_div(grid.size.x / grid.block.rows, grid.splits.x)),
        y_step_(ceil_div(grid.size.y / grid.block.cols, grid.splits.y)),
        cols_(grid.size.y / grid.block.cols),
        splits_(grid.splits) {}

  // Returns false if a row breaks the rules of sparse::check.
  bool cut(std::int64_t x, Pieces::Part& part) {
    first_row_ = x * x_step_;
    rows_ = std::min(x_step_, std::ssize(pattern_.row_begin) - 1 - first_row_);
    border_.resize(static_cast<std::size_t>((splits_.y + 1) * rows_));
    for (std::int64_t row = 0; row < rows_; ++row)
      if (!cut_row(row)) return false;
    part.run_begin.assign(1, 0);
    for (std::int64_t y = 0; y < splits_.y; ++y) add_cell(y, part);
    return true;
  }

 private:
  // The position where partition y begins in the row.
  std::int32_t& border(std::int64_t y, std::int64_t row) {
    return border_[static_cast<std::size_t>(y * rows_ + row)];
  }

  bool cut_row(std::int64_t row) {
    const auto begin = pattern_.row_begin[first_row_ + row];
    const auto end = pattern_.row_begin[first_row_ + row + 1];
    if (!sparse::is_legal_row(pattern_.col.subspan(begin, end - begin), cols_)) return false;
    border(0, row) = static_cast<std::int32_t>(begin);
    border(splits_.y, row) = static_cast<std::int32_t>(end);
    // With fewer than about eight blocks for each border, walking along the row is cheaper than
    // searching.
    const bool search = end - begin > 8 * splits_.y;
    const std::int32_t* col = pattern_.col.data();
    std::int64_t at = begin;
    for (std::int64_t y = 1; y < splits_.y; ++y) {
      if (search)
        at = first_not_below(col, begin, end, y * y_step_);
      else
        while (at < end && col[at] < y * y_step_) ++at;
      border(y, row) = static_cast<std::int32_t>(at);
    }
    return true;
  }

  // Cuts a cell into equal stretches, as many as are needed to keep each at or below ceil(count / z
  // splits). The last buckets of a cell may be empty.
  void add_cell(std::int64_t y, Pieces::Part& part) {
    std::int64_t count = 0;
    for (std::int64_t row = 0; row < rows_; ++row) count += border(y + 1, row) - border(y, row);
    const std::int64_t stretches = count == 0 ? 1 : ceil_div(count, ceil_div(count, splits_.z));
    std::int64_t row = 0, placed = 0;
    Run rest = row_run(y, row);
    for (std::int64_t z = 1; z <= splits_.z; ++z) {
      const std::int64_t end = std::min(z, stretches) * count / stretches;
      part.blocks.push_back(end - placed);
      const std::size_t first = part.runs.size();
      while (placed < end) {
        while (rest.count == 0) rest = row_run(y, ++row);
        const auto n = static_cast<std::int32_t>(std::min<std::int64_t>(rest.count, end - placed));
        part.runs.push_back(rest.prefix(n));
        rest = rest.without_prefix(n);
        placed += n;
      }
      part.cut_rows += placed < count && rest.count > 0;
      sort_longer_first(part.runs, first);
      part.run_begin.push_back(std::ssize(part.runs));
    }
  }

  Run row_run(std::int64_t y, std::int64_t row) {
    const std::int32_t begin = border(y, row);
    return {begin, border(y + 1, row) - begin, static_cast<std::int32_t>(row)};
  }

  // Sorts the runs from `first` on, which are in order of rows, by longer_row_first. Uses a
  // counting sort if there are few enough lengths, which random patterns always have: a comparison
  // sort mispredicts its branches.
  void sort_longer_first(std::vector<Run>& runs, std::size_t first) {
    const std::span<Run> piece = std::span(runs).subspan(first);
    if (piece.size() < 2) return;
    std::int32_t longest = 0, shortest = piece.front().count;
    for (const Run& run : piece) {
      longest = std::max(longest, run.count);
      shortest = std::min(shortest, run.count);
    }
    if (static_cast<std::size_t>(longest - shortest) > 4 * piece.size() + 64) {
      std::sort(piece.begin(), piece.end(), longer_row_first);
      return;
    }
    const auto place = [longest](const Run& run) {
      return static_cast<std::size_t>(longest - run.count);
    };
    next_.assign(static_cast<std::size_t>(longest - shortest) + 1, 0);
    for (const Run& run : piece) ++next_[place(run)];
    std::int32_t before = 0;
    for (std::int32_t& next : next_) before += std::exchange(next, before);
    sorted_.resize(piece.size());
    for (const Run& run : piece) sorted_[static_cast<std::size_t>(next_[place(run)]++)] = run;
    std::copy(sorted_.begin(), sorted_.end(), piece.begin());
  }

  Pattern pattern_;
  std::int64_t x_step_, y_step_, cols_;
  Dims splits_;
  std::int64_t first_row_ = 0, rows_ = 0;
  std::vector<std::int32_t> border_, next_;
  std::vector<Run> sorted_;
};

}  // namespace

std::optional<Pieces> cut_to_pieces(const Pattern& pattern, const TileGrid& grid,
                                    Executor& executor) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(grid.splits.x));
  std::iota(all.begin(), all.end(), 0);
  return cut_to_pieces(pattern, grid, all, executor);
}

std::optional<Pieces> cut_to_pieces(const Pattern& pattern, const TileGrid& grid,
                                    std::span<const std::int64_t> parts, Executor& executor) {
  checked_int32(static_cast<std::int64_t>(pattern.col.size()), "non-zero blocks of a matrix");
  Pieces pieces;
  pieces.pattern = pattern;
  pieces.buckets_per_part = grid.splits.y * grid.splits.z;
  pieces.y_step = ceil_div(grid.size.y / grid.block.cols, grid.splits.y);
  pieces.y_splits = grid.splits.y;
  pieces.parts.resize(static_cast<std::size_t>(grid.splits.x));
  std::atomic<bool> legal = true;
  executor.for_each(std::ssize(parts), [&](std::int64_t i) {
    const std::int64_t x = parts[static_cast<std::size_t>(i)];
    if (!PartCutter(pattern, grid).cut(x, pieces.parts[static_cast<std::size_t>(x)]))
      legal.store(false, std::memory_order_relaxed);
  });
  if (!legal) return std::nullopt;
  return pieces;
}

}  // namespace tessera::partitioner::internal
