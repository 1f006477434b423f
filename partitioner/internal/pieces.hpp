#pragma once

#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/partitioner/tile_grid.hpp"

namespace tessera::partitioner::internal {

// Where the blocks of a canonical matrix lie; see sparse::Csr.
struct Pattern {
  std::span<const std::int64_t> row_begin;
  std::span<const std::int32_t> col;
};

// Neighbouring blocks of one row of one cell: positions begin .. begin + count - 1 of the matrix.
// Inside a cell a smaller begin is an earlier row, or an earlier column of the same row.
struct Run {
  std::int32_t begin = 0, count = 0;
  std::int32_t row = 0;  // block row inside the cell

  friend bool operator==(const Run&, const Run&) = default;
  Run prefix(std::int32_t n) const { return {begin, n, row}; }
  Run suffix(std::int32_t n) const { return {begin + count - n, n, row}; }
  Run without_prefix(std::int32_t n) const { return suffix(count - n); }
  Run without_suffix(std::int32_t n) const { return prefix(count - n); }
};

// Long rows first, so that stripping from the end removes the rows that are cheap to move.
constexpr bool longer_row_first(const Run& a, const Run& b) {
  return a.count != b.count ? a.count > b.count : a.row < b.row;
}

// The blocks of a matrix, sorted to the buckets that are their homes. The blocks of a cell in order
// of row, then column, are cut into one stretch for each of its buckets. Nothing is copied of the
// matrix, whose arrays must outlive this.
struct Pieces {
  // The buckets of one x partition.
  struct Part {
    std::vector<Run> runs;                // one per row of a piece; in a piece: longer_row_first
    std::vector<std::int64_t> run_begin;  // [buckets of the part + 1]
    std::vector<std::int64_t> blocks;     // [buckets of the part]
    std::int64_t cut_rows = 0;            // borders of pieces that fall inside a row
  };
  Pattern pattern;
  std::int64_t buckets_per_part = 1;
  std::int64_t y_step = 1, y_splits = 1;  // block columns of a cell, cells of a part
  std::vector<Part> parts;                // [splits.x]

  std::int64_t items() const { return static_cast<std::int64_t>(pattern.col.size()); }
  std::int64_t run_count() const {
    std::int64_t count = 0;
    for (const Part& part : parts) count += std::ssize(part.runs);
    return count;
  }
  // Rows of all cells that hold a block.
  std::int64_t row_count() const {
    std::int64_t count = run_count();
    for (const Part& part : parts) count -= part.cut_rows;
    return count;
  }
  const Part& part_of(std::int64_t bucket) const {
    return parts[static_cast<std::size_t>(bucket / buckets_per_part)];
  }
  std::int64_t blocks_of(std::int64_t bucket) const {
    return part_of(bucket).blocks[static_cast<std::size_t>(bucket % buckets_per_part)];
  }
  std::span<const Run> runs_of(std::int64_t bucket) const {
    const Part& part = part_of(bucket);
    const auto b = static_cast<std::size_t>(bucket % buckets_per_part);
    return std::span(part.runs).subspan(
        static_cast<std::size_t>(part.run_begin[b]),
        static_cast<std::size_t>(part.run_begin[b + 1] - part.run_begin[b]));
  }
  // Block column of the matrix where a cell begins.
  std::int32_t first_col(std::int64_t cell) const {
    return static_cast<std::int32_t>(cell % y_splits * y_step);
  }
};

// Nothing when a row breaks the rules of sparse::check; row_begin must keep them.
// O(blocks + runs log(runs of a bucket)); one task for each x partition. Error{LimitExceeded}
// beyond 2^31 - 1 blocks.
std::optional<Pieces> cut_to_pieces(const Pattern& pattern, const TileGrid& grid,
                                    Executor& executor);
// Only the parts of some x partitions; the others stay without lists.
std::optional<Pieces> cut_to_pieces(const Pattern& pattern, const TileGrid& grid,
                                    std::span<const std::int64_t> parts, Executor& executor);

}  // namespace tessera::partitioner::internal
