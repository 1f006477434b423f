#include "tessera/host/internal/transpose.hpp"

#include <algorithm>

#include "tessera/base/int_math.hpp"

namespace tessera::host::internal {
namespace {

// Returns the number of bands: of 512 columns, but so many that a row has eight blocks in each.
std::int64_t bands_of(const sparse::Csr<float>& matrix) {
  constexpr std::int64_t kColumns = 512, kBlocks = 8;
  const std::int64_t in_row = matrix.blocks() / std::max<std::int64_t>(matrix.block_rows(), 1);
  return std::clamp<std::int64_t>(ceil_div(matrix.block_cols(), kColumns), 1,
                                  std::max<std::int64_t>(in_row / kBlocks, 1));
}

}  // namespace

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
  // The columns of a band are written to at the same time. Their lists are pages apart, for which
  // the processor has to translate addresses; those of all columns at once would be too many.
  const std::int64_t bands = bands_of(matrix), width = ceil_div(matrix.block_cols(), bands);
  std::vector<std::int64_t> at(matrix.row_begin.begin(), matrix.row_begin.end() - 1);
  for (std::int64_t band = 0; band < bands; ++band)
    for (std::int64_t row = 0; row < matrix.block_rows(); ++row) {
      std::int64_t i = at[std::size_t(row)];
      const std::int64_t end = matrix.row_begin[std::size_t(row) + 1];
      for (; i < end && matrix.col[std::size_t(i)] < (band + 1) * width; ++i) {
        const auto to = std::size_t(next[std::size_t(matrix.col[std::size_t(i)])]++);
        result.matrix.col[to] = static_cast<std::int32_t>(row);
        result.block_of[to] = static_cast<std::int32_t>(i);
      }
      at[std::size_t(row)] = i;
    }
  return result;
}

}  // namespace tessera::host::internal
