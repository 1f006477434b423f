#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/partitioner/tile_grid.hpp"

namespace tessera::partitioner::internal {

// Where the blocks of a canonical matrix lie; see sparse::Csr.
struct Pattern {
  std::span<const std::int64_t> row_begin;
  std::span<const std::int32_t> col;
};

// Neighbouring items of one row of one cell: items begin .. begin + count - 1 of Pieces.
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

// The blocks of a matrix, sorted to the buckets that are their homes. An item is one block. Items
// lie by cell, then row, then column; the z shares of a cell are stretches of that order. Bucket b
// is home to items item_begin[b] .. item_begin[b + 1] and to runs run_begin[b] .. run_begin[b + 1].
struct Pieces {
  std::vector<std::int32_t> block;       // [items] position in the matrix
  std::vector<std::int32_t> col;         // [items] block column inside the cell
  std::vector<Run> runs;                 // one per row of a piece; in a piece: longer_row_first
  std::vector<std::int64_t> item_begin;  // [buckets + 1]
  std::vector<std::int64_t> run_begin;   // [buckets + 1]

  std::int64_t items() const { return static_cast<std::int64_t>(block.size()); }
  std::span<const Run> runs_of(std::int64_t bucket) const {
    const std::size_t b = static_cast<std::size_t>(bucket);
    return std::span(runs).subspan(static_cast<std::size_t>(run_begin[b]),
                                   static_cast<std::size_t>(run_begin[b + 1] - run_begin[b]));
  }
};

// O(blocks log(rows of a cell) + block rows + buckets). Error{LimitExceeded} beyond 2^31 - 1
// blocks.
Pieces cut_to_pieces(const Pattern& pattern, const TileGrid& grid);

}  // namespace tessera::partitioner::internal
