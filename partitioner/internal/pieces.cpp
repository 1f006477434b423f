#include "tessera/partitioner/internal/pieces.hpp"

#include <algorithm>

namespace tessera::partitioner::internal {
namespace {

// Calls visit(position, cell, row in cell, column in cell) for every block, in the matrix' order.
template <class Visit>
void for_each_block(const Pattern& pattern, const TileGrid& grid, Visit&& visit) {
  const std::int64_t x_step = ceil_div(grid.size.x / grid.block.rows, grid.splits.x);
  const std::int64_t y_step = ceil_div(grid.size.y / grid.block.cols, grid.splits.y);
  const auto rows = static_cast<std::int64_t>(pattern.row_begin.size()) - 1;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t x = row / x_step;
    std::int64_t cell = x * grid.splits.y, first_col = 0;
    for (std::int64_t i = pattern.row_begin[row]; i < pattern.row_begin[row + 1]; ++i) {
      for (; pattern.col[i] >= first_col + y_step; first_col += y_step) ++cell;
      visit(i, cell, row - x * x_step, pattern.col[i] - first_col);
    }
  }
}

// Cuts [0, count) of each cell into equal stretches, as many as are needed to keep each at or below
// ceil(count / z splits): the last tiles of a cell may stay empty.
std::vector<std::int64_t> bucket_begins(const std::vector<std::int64_t>& cell_begin,
                                        const TileGrid& grid) {
  std::vector<std::int64_t> begin{0};
  begin.reserve(static_cast<std::size_t>(grid.buckets() + 1));
  for (std::size_t cell = 0; cell + 1 < cell_begin.size(); ++cell) {
    const std::int64_t count = cell_begin[cell + 1] - cell_begin[cell];
    const std::int64_t parts = count == 0 ? 1 : ceil_div(count, ceil_div(count, grid.splits.z));
    for (std::int64_t z = 1; z <= grid.splits.z; ++z)
      begin.push_back(cell_begin[cell] + std::min(z, parts) * count / parts);
  }
  return begin;
}

void add_runs(const std::vector<std::int32_t>& row_of, Pieces& pieces) {
  pieces.run_begin.push_back(0);
  for (std::size_t b = 0; b + 1 < pieces.item_begin.size(); ++b) {
    const auto first_run = static_cast<std::ptrdiff_t>(pieces.runs.size());
    for (auto i = pieces.item_begin[b]; i < pieces.item_begin[b + 1]; ++i) {
      const std::int32_t row = row_of[static_cast<std::size_t>(i)];
      if (i == pieces.item_begin[b] || pieces.runs.back().row != row)
        pieces.runs.push_back({static_cast<std::int32_t>(i), 0, row});
      ++pieces.runs.back().count;
    }
    std::sort(pieces.runs.begin() + first_run, pieces.runs.end(), longer_row_first);
    pieces.run_begin.push_back(static_cast<std::int64_t>(pieces.runs.size()));
  }
}

}  // namespace

Pieces cut_to_pieces(const Pattern& pattern, const TileGrid& grid) {
  checked_int32(static_cast<std::int64_t>(pattern.col.size()), "non-zero blocks of a matrix");
  const auto cells = static_cast<std::size_t>(grid.splits.x * grid.splits.y);
  std::vector<std::int64_t> cell_begin(cells + 1);
  for_each_block(pattern, grid, [&](std::int64_t, std::int64_t cell, std::int64_t, std::int64_t) {
    ++cell_begin[static_cast<std::size_t>(cell) + 1];
  });
  for (std::size_t cell = 0; cell < cells; ++cell) cell_begin[cell + 1] += cell_begin[cell];

  Pieces pieces;
  pieces.block.resize(pattern.col.size());
  pieces.col.resize(pattern.col.size());
  std::vector<std::int32_t> row_of(pattern.col.size());
  std::vector<std::int64_t> next = cell_begin;
  for_each_block(
      pattern, grid, [&](std::int64_t i, std::int64_t cell, std::int64_t row, std::int64_t col) {
        const auto item = static_cast<std::size_t>(next[static_cast<std::size_t>(cell)]++);
        pieces.block[item] = static_cast<std::int32_t>(i);
        pieces.col[item] = static_cast<std::int32_t>(col);
        row_of[item] = static_cast<std::int32_t>(row);
      });
  pieces.item_begin = bucket_begins(cell_begin, grid);
  add_runs(row_of, pieces);
  return pieces;
}

}  // namespace tessera::partitioner::internal
