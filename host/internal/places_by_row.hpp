#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/base/aligned_vector.hpp"
#include "tessera/base/even_part.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/host/internal/share_work.hpp"
#include "tessera/host/sparse_views.hpp"

namespace tessera::host::internal {

// The places of a matrix in the order of their rows. Those of a row keep the order of their list.
template <class T, class Index>
struct PlacesByRow {
  std::vector<std::int64_t> begin;  // [rows + 1] positions
  AlignedVector<Index> col;
  AlignedVector<T> values;

  CompressedRows<T, Index, std::int64_t> view(std::int64_t cols) const {
    return {std::ssize(begin) - 1, cols, {1, 1}, begin, col, values};
  }
};

// Sorts checked places by their rows: one counting sort, O(places * threads + rows), in which each
// thread reads the whole list and writes a part of the rows. for_each(visit) calls visit(place,
// column) in the order of the list.
template <class T, class Index, class ForEach>
PlacesByRow<T, Index> places_by_row(std::int64_t rows, std::span<const Index> row,
                                    std::span<const T> values, const ForEach& for_each,
                                    Executor& executor) {
  PlacesByRow<T, Index> result;
  std::vector<std::int64_t>& begin = result.begin;
  begin.resize(std::size_t(rows) + 1);
  result.col.resize(row.size());
  result.values.resize(row.size());
  const std::int64_t parts = executor.threads();
  const auto for_own_rows = [&](const auto& body) {
    share_copies(executor, parts, std::ssize(row), [&](std::int64_t part) {
      const Range own = even_part(rows, parts, part);
      body([own](std::int64_t r) { return r >= own.begin && r < own.end; });
    });
  };
  for_own_rows([&](const auto& is_own) {
    for (const Index r : row)
      if (is_own(r)) ++begin[std::size_t(r) + 1];
  });
  for (std::size_t r = 1; r < begin.size(); ++r) begin[r] += begin[r - 1];
  std::vector<std::int64_t> next = begin;
  for_own_rows([&](const auto& is_own) {
    for_each([&](std::int64_t place, std::int64_t column) {
      const auto i = std::size_t(place), r = std::size_t(row[i]);
      if (!is_own(row[i])) return;
      const auto to = std::size_t(next[r]++);
      result.col[to] = Index(column);
      result.values[to] = values[i];
    });
  });
  return result;
}

}  // namespace tessera::host::internal
