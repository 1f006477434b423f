#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace tessera::sparse {

// The order of entries by (row, column, position). The entries of row r are order[row_begin[r]] up
// to, but not including, order[row_begin[r + 1]].
struct RowOrder {
  std::vector<std::int64_t> row_begin;  // [rows + 1]
  std::vector<std::int64_t> order;      // [entries] positions in the unsorted arrays
};

// Returns the order of the entries with coordinates (row[i], col[i]). A stable counting sort over
// the rows is followed by a sort of those rows whose columns are not ascending. The cost is
// O(entries + rows) if all ascend, and O(entries * log(longest row) + rows) at worst. It needs no
// array with an entry per column, so the width of the matrix does not matter.
// The caller guarantees 0 <= row[i] < rows and row.size() == col.size().
RowOrder sort_by_row(std::int64_t rows, std::span<const std::int32_t> row,
                     std::span<const std::int32_t> col);

// Returns the positions of the first two entries in that order that have the same coordinates, the
// earlier position first, or nothing. O(entries + rows).
std::optional<std::pair<std::int64_t, std::int64_t>> find_duplicate(
    const RowOrder& sorted, std::span<const std::int32_t> col);

}  // namespace tessera::sparse
