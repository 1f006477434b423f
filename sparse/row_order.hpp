#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace tessera::sparse {

// Entries sorted by (row, column, position): those of row r are order[row_begin[r]] up to
// order[row_begin[r + 1]].
struct RowOrder {
  std::vector<std::int64_t> row_begin;  // [rows + 1]
  std::vector<std::int64_t> order;      // [entries] positions in the unsorted arrays
};

// A counting sort over rows, which keeps the order of entries, then a sort of those rows whose
// columns did not arrive ascending: O(entries + rows) when they did, and O(entries * log(longest
// row)) at worst. No array of the size of the columns, so a wide matrix costs nothing.
// Needs 0 <= row[i] < rows and row.size() == col.size().
RowOrder sort_by_row(std::int64_t rows, std::span<const std::int32_t> row,
                     std::span<const std::int32_t> col);

// The first two entries in that order with the same coordinates, earlier position first.
std::optional<std::pair<std::int64_t, std::int64_t>> find_duplicate(
    const RowOrder& sorted, std::span<const std::int32_t> col);

}  // namespace tessera::sparse
