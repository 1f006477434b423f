#include "tessera/partitioner/internal/pieces.hpp"

#include <algorithm>
#include <atomic>
#include <numeric>

#include "tessera/partitioner/internal/longest_first.hpp"
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
        per_column_(static_cast<std::uint64_t>(ceil_div(kOne, y_step_))),
        splits_(grid.splits) {}

  // Returns false if a row breaks the rules of sparse::check.
  bool cut(std::int64_t x, Pieces::Part& part) {
    first_row_ = x * x_step_;
    rows_ = std::min(x_step_, std::ssize(pattern_.row_begin) - 1 - first_row_);
    border_.assign(static_cast<std::size_t>((splits_.y + 1) * rows_), 0);
    for (std::int64_t row = 0; row < rows_; ++row)
      if (!cut_row(row)) return false;
    carry_borders();
    part.run_begin.reserve(static_cast<std::size_t>(splits_.y * splits_.z) + 1);
    part.run_begin.assign(1, 0);
    const std::int64_t blocks =
        pattern_.row_begin[first_row_ + rows_] - pattern_.row_begin[first_row_];
    part.runs.reserve(static_cast<std::size_t>(std::min(blocks, splits_.y * (rows_ + splits_.z))));
    part.blocks.reserve(static_cast<std::size_t>(splits_.y * splits_.z));
    for (std::int64_t y = 0; y < splits_.y; ++y) add_cell(y, part);
    return true;
  }

 private:
  // The borders where partition y begins in each row.
  std::int32_t* borders(std::int64_t y) { return border_.data() + y * rows_; }

  bool cut_row(std::int64_t row) {
    const auto begin = pattern_.row_begin[first_row_ + row];
    const auto end = pattern_.row_begin[first_row_ + row + 1];
    if (!sparse::is_legal_row(pattern_.col.subspan(begin, end - begin), cols_)) return false;
    borders(0)[row] = static_cast<std::int32_t>(begin);
    borders(splits_.y)[row] = static_cast<std::int32_t>(end);
    // With fewer than about 40 blocks for each border, looking at every block is cheaper than
    // searching. Beyond this size of a row, its columns cannot be divided by a product.
    if (end - begin > 40 * (splits_.y - 1) || cols_ * y_step_ >= kOne)
      search_row(row, begin, end);
    else
      mark_row(row, begin, end);
    return true;
  }

  void search_row(std::int64_t row, std::int64_t begin, std::int64_t end) {
    std::int64_t at = begin;
    for (std::int64_t y = 1; y < splits_.y; ++y) {
      at = first_not_below(pattern_.col.data(), at, end, y * y_step_);
      borders(y)[row] = static_cast<std::int32_t>(at);
    }
  }

  // Every block moves the border behind its partition to behind itself, and the last one in the
  // partition decides. There is no branch that depends on the pattern. Borders of partitions
  // without blocks in the row remain 0 for carry_borders(). The quotient is exact: per_column_ is
  // larger than kOne / y_step_ by less than 1, which adds less than 1 / y_step_ to it as long as
  // columns are below kOne / y_step_.
  void mark_row(std::int64_t row, std::int64_t begin, std::int64_t end) {
    const std::uint64_t per_column = per_column_;
    const std::int32_t* col = pattern_.col.data();
    std::int32_t* const after = borders(1) + row;
    for (std::int64_t i = begin; i < end; ++i) {
      const auto y =
          static_cast<std::int64_t>(static_cast<std::uint32_t>(col[i]) * per_column / kOne);
      after[y * rows_] = static_cast<std::int32_t>(i + 1);
    }
  }

  // Gives partitions without blocks the border of the partition before them.
  void carry_borders() {
    for (std::int64_t y = 1; y < splits_.y; ++y) {
      const std::int32_t* const before = borders(y - 1);
      std::int32_t* const border = borders(y);
      for (std::int64_t row = 0; row < rows_; ++row)
        border[row] = std::max(border[row], before[row]);
    }
  }

  // Lists the runs of a cell in order of rows, and returns its number of blocks.
  std::int64_t list_runs(std::int64_t y) {
    const std::int32_t* const begin = borders(y);
    const std::int32_t* const end = borders(y + 1);
    cell_.resize(static_cast<std::size_t>(rows_) + 1);
    Run* to = cell_.data();
    std::int64_t count = 0;
    for (std::int64_t row = 0; row < rows_; ++row) {
      *to = {begin[row], end[row] - begin[row], static_cast<std::int32_t>(row)};
      count += to->count;
      to += to->count > 0;
    }
    return count;
  }

  // Cuts a cell into equal stretches, as many as are needed to keep each at or below ceil(count / z
  // splits). The last buckets of a cell may be empty.
  void add_cell(std::int64_t y, Pieces::Part& part) {
    const std::int64_t count = list_runs(y);
    const std::int64_t stretches = count == 0 ? 1 : ceil_div(count, ceil_div(count, splits_.z));
    std::int64_t placed = 0;
    Run* first = cell_.data();
    for (std::int64_t z = 1; z <= splits_.z; ++z) {
      const std::int64_t end = std::min(z, stretches) * count / stretches;
      part.blocks.push_back(end - placed);
      Run* last = first;
      while (placed < end) placed += last++->count;
      // The last run may belong to this stretch in part only.
      const auto surplus = static_cast<std::int32_t>(placed - end);
      if (surplus > 0) last[-1].count -= surplus;
      add_longer_first({first, last}, part.runs);
      part.run_begin.push_back(std::ssize(part.runs));
      part.cut_rows += surplus > 0;
      first = last;
      placed = end;
      if (surplus == 0) continue;
      --first;
      *first = {first->begin + first->count, surplus, first->row};
    }
  }

  // Adds the runs of a piece, which are in order of rows, to `runs` by longer_row_first. Uses a
  // counting sort if there are few enough lengths, which random patterns always have: a comparison
  // sort mispredicts its branches.
  void add_longer_first(std::span<const Run> piece, std::vector<Run>& runs) {
    const std::size_t first = runs.size();
    std::int32_t longest = 0;
    for (const Run& run : piece) longest = std::max(longest, run.count);
    if (static_cast<std::size_t>(longest) > 4 * piece.size() + 64) {
      runs.insert(runs.end(), piece.begin(), piece.end());
      std::sort(runs.begin() + static_cast<std::ptrdiff_t>(first), runs.end(), longer_row_first);
      return;
    }
    runs.resize(first + piece.size());
    longest_first_.place(
        piece.size(), longest, [piece](std::size_t i) { return piece[i].count; },
        [&](std::size_t i, std::size_t to) { runs[first + to] = piece[i]; });
  }

  // One, as a fixed-point number with which columns are divided.
  static constexpr std::int64_t kOne = std::int64_t{1} << 32;

  Pattern pattern_;
  std::int64_t x_step_, y_step_, cols_;
  std::uint64_t per_column_;  // partitions
  Dims splits_;
  std::int64_t first_row_ = 0, rows_ = 0;
  std::vector<std::int32_t> border_;
  LongestFirst longest_first_;
  std::vector<Run> cell_;  // of the cell that is being added
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
