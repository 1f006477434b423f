#pragma once

#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/partitioner/tile_grid.hpp"

namespace tessera::partitioner::internal {

// The places of the blocks of a canonical matrix; see sparse::Csr.
struct Pattern {
  std::span<const std::int64_t> row_begin;
  std::span<const std::int32_t> col;
};

// A run is a stretch of neighbouring blocks of one row of one cell: positions begin .. begin +
// count - 1 of the matrix. Inside a cell a smaller `begin` is an earlier row, or an earlier column
// of the same row.
struct Run {
  std::int32_t begin = 0, count = 0;
  std::int32_t row = 0;  // block row inside the cell

  friend bool operator==(const Run&, const Run&) = default;
  Run prefix(std::int32_t n) const { return {begin, n, row}; }
  Run suffix(std::int32_t n) const { return {begin + count - n, n, row}; }
  Run without_prefix(std::int32_t n) const { return suffix(count - n); }
  Run without_suffix(std::int32_t n) const { return prefix(count - n); }
};

// Orders long rows first, so that stripping from the end removes the rows that are cheap to move.
constexpr bool longer_row_first(const Run& a, const Run& b) {
  return a.count != b.count ? a.count > b.count : a.row < b.row;
}

// Pieces assigns the blocks of a matrix to the buckets that are their homes. The blocks of a cell,
// in order of row, then column, are cut into one stretch for each of its buckets. Nothing of the
// matrix is copied, so its arrays must outlive this object.
struct Pieces {
  // The buckets of one x partition.
  struct Part {
    std::vector<Run> runs;                // one per row of a piece; in a piece: longer_row_first
    std::vector<std::int64_t> run_begin;  // [buckets of the part + 1]
    std::vector<std::int64_t> blocks;     // [buckets of the part]
    std::int64_t cut_rows = 0;            // borders between pieces that are inside a row
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

  // Number of rows, over all cells, that have a block.
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

  // The first block column of a cell, counted in the matrix.
  std::int32_t first_col(std::int64_t cell) const {
    return static_cast<std::int32_t>(cell % y_splits * y_step);
  }
};

// Cuts a matrix into pieces, with one task for each x partition. Returns nothing if a row breaks
// the rules of sparse::check; row_begin must already keep them. Throws Error{LimitExceeded} beyond
// 2^31 - 1 blocks. O(blocks + runs log(runs of a bucket)).
std::optional<Pieces> cut_to_pieces(const Pattern& pattern, const TileGrid& grid,
                                    Executor& executor);

// Cuts only the parts of some x partitions; the other parts have no lists.
std::optional<Pieces> cut_to_pieces(const Pattern& pattern, const TileGrid& grid,
                                    std::span<const std::int64_t> parts, Executor& executor);

}  // namespace tessera::partitioner::internal
