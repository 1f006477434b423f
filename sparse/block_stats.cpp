#include "tessera/sparse/block_stats.hpp"

#include <algorithm>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/sparse/check.hpp"
#include "tessera/sparse/internal/pattern_counts.hpp"

namespace tessera::sparse {

template <class T>
PatternStats stats_in_blocks(const Csr<T>& elements, BlockShape block) {
  if (!elements.block.is_element())
    throw Error(ErrorCode::InvalidArgument,
                "stats_in_blocks: the matrix has blocks; it must be a matrix of elements");
  check(elements);
  const std::int64_t rows = ceil_div(elements.rows, block.rows);
  const std::int64_t cols = ceil_div(elements.cols, block.cols);
  internal::PatternCounts counts(rows, cols, block);
  // The block row that has last met a column of blocks.
  std::vector<std::int64_t> met(static_cast<std::size_t>(cols), -1);
  const auto begin_of = [&](std::int64_t row) {
    return elements.row_begin[static_cast<std::size_t>(std::min(elements.rows, row * block.rows))];
  };
  for (std::int64_t row = 0; row < rows; ++row) {
    counts.begin_row(row);
    for (std::int64_t i = begin_of(row); i < begin_of(row + 1); ++i) {
      const std::int64_t col = elements.col[static_cast<std::size_t>(i)] / block.cols;
      if (met[static_cast<std::size_t>(col)] == row) continue;
      met[static_cast<std::size_t>(col)] = row;
      counts.add(col);
    }
  }
  return std::move(counts).finish();
}

template PatternStats stats_in_blocks(const Csr<float>&, BlockShape);
template PatternStats stats_in_blocks(const Csr<double>&, BlockShape);

}  // namespace tessera::sparse
