#include "tessera/sparse/row_order.hpp"

#include <algorithm>

namespace tessera::sparse {

RowOrder sort_by_row(std::int64_t rows, std::span<const std::int32_t> row,
                     std::span<const std::int32_t> col) {
  RowOrder result{std::vector<std::int64_t>(static_cast<std::size_t>(rows) + 1),
                  std::vector<std::int64_t>(row.size())};
  auto& begin = result.row_begin;
  auto& order = result.order;
  for (const std::int32_t r : row) ++begin[std::size_t(r) + 1];
  for (std::size_t r = 1; r < begin.size(); ++r) begin[r] += begin[r - 1];
  // While row r is filled, begin[r] advances to its end; afterwards all begins are shifted back by
  // one row.
  for (std::size_t i = 0; i < row.size(); ++i) order[begin[row[i]]++] = std::int64_t(i);
  for (std::size_t r = begin.size() - 1; r > 0; --r) begin[r] = begin[r - 1];
  begin[0] = 0;

  const auto earlier = [col](std::int64_t a, std::int64_t b) {
    return col[a] != col[b] ? col[a] < col[b] : a < b;
  };
  for (std::size_t r = 0; r + 1 < begin.size(); ++r) {
    const auto first = order.begin() + begin[r], last = order.begin() + begin[r + 1];
    if (!std::is_sorted(first, last, earlier)) std::sort(first, last, earlier);
  }
  return result;
}

std::optional<std::pair<std::int64_t, std::int64_t>> find_duplicate(
    const RowOrder& sorted, std::span<const std::int32_t> col) {
  const auto& [begin, order] = sorted;
  for (std::size_t r = 0; r + 1 < begin.size(); ++r)
    for (std::int64_t k = begin[r] + 1; k < begin[r + 1]; ++k)
      if (col[order[k]] == col[order[k - 1]]) return std::pair(order[k - 1], order[k]);
  return std::nullopt;
}

}  // namespace tessera::sparse
