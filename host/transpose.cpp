#include "tessera/host/internal/transpose.hpp"

namespace tessera::host::internal {

TransposedPattern transposed_pattern(const sparse::Csr<float>& matrix) {
  TransposedPattern result;
  result.matrix.rows = matrix.cols;
  result.matrix.cols = matrix.rows;
  result.matrix.block = matrix.block.transposed();
  result.matrix.col.resize(matrix.col.size());
  result.matrix.values.resize(matrix.values.size());
  result.block_of.resize(matrix.col.size());
  std::vector<std::int32_t> next(std::size_t(matrix.block_cols()) + 1);
  for (const std::int32_t col : matrix.col) ++next[std::size_t(col) + 1];
  for (std::size_t c = 1; c < next.size(); ++c) next[c] += next[c - 1];
  result.matrix.row_begin.assign(next.begin(), next.end());
  for (std::int64_t row = 0; row < matrix.block_rows(); ++row)
    for (auto i = matrix.row_begin[std::size_t(row)]; i < matrix.row_begin[std::size_t(row) + 1];
         ++i) {
      const auto to = std::size_t(next[std::size_t(matrix.col[std::size_t(i)])]++);
      result.matrix.col[to] = static_cast<std::int32_t>(row);
      result.block_of[to] = static_cast<std::int32_t>(i);
    }
  return result;
}

}  // namespace tessera::host::internal
