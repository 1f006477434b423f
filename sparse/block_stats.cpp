#include "tessera/sparse/block_stats.hpp"

#include <algorithm>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/sparse/check.hpp"
#include "tessera/sparse/convert.hpp"
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

PatternStats stats_of_groups(std::span<const CheckedCsr<float>> matrices) {
  if (matrices.empty())
    throw Error(ErrorCode::InvalidArgument, "stats_of_groups: there is no matrix");
  if (matrices.size() == 1) return pattern_stats(matrices[0]);
  Csr<float> diagonal;
  diagonal.block = matrices[0]->block;
  diagonal.row_begin = {0};
  for (const auto& matrix : matrices) {
    const auto first_value = diagonal.row_begin.back();
    const auto first_column = std::int32_t(diagonal.cols / diagonal.block.cols);
    for (std::size_t r = 1; r < matrix->row_begin.size(); ++r)
      diagonal.row_begin.push_back(first_value + matrix->row_begin[r]);
    for (const std::int32_t column : matrix->col) diagonal.col.push_back(first_column + column);
    diagonal.values.insert(diagonal.values.end(), matrix->values.begin(), matrix->values.end());
    diagonal.rows += matrix->rows;
    diagonal.cols += matrix->cols;
  }
  return pattern_stats(diagonal);
}

std::int64_t empty_block_rows(const Csr<float>& matrix) {
  std::int64_t empty = 0;
  for (std::size_t row = 1; row < matrix.row_begin.size(); ++row)
    empty += matrix.row_begin[row] == matrix.row_begin[row - 1];
  return empty;
}

template PatternStats stats_in_blocks(const Csr<float>&, BlockShape);
template PatternStats stats_in_blocks(const Csr<double>&, BlockShape);

}  // namespace tessera::sparse
