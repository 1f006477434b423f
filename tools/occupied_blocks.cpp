#include "tessera/tools/occupied_blocks.hpp"

#include <algorithm>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/sparse/convert.hpp"

namespace tessera::tools {

sparse::Csr<float> occupied_blocks(const sparse::Csr<double>& elements, BlockShape block) {
  if (!elements.block.is_element())
    throw Error(ErrorCode::InvalidArgument,
                "occupied_blocks: the matrix has blocks; it must be a matrix of elements");
  sparse::Csr<float> result;
  result.rows = ceil_div(elements.rows, block.rows);
  result.cols = ceil_div(elements.cols, block.cols);
  // The block row that has last met a column of blocks.
  std::vector<std::int64_t> met(std::size_t(result.cols), -1);
  for (std::int64_t row = 0; row < result.rows; ++row) {
    const auto first = std::ssize(result.col);
    const std::int64_t begin = elements.row_begin[std::size_t(row * block.rows)];
    const std::int64_t last_row = std::min(elements.rows, (row + 1) * block.rows);
    const std::int64_t end = elements.row_begin[std::size_t(last_row)];
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t col = elements.col[std::size_t(i)] / block.cols;
      if (met[std::size_t(col)] == row) continue;
      met[std::size_t(col)] = row;
      result.col.push_back(std::int32_t(col));
    }
    std::sort(result.col.begin() + first, result.col.end());
    result.row_begin.push_back(std::ssize(result.col));
  }
  result.values.assign(result.col.size(), 1.0F);
  return result;
}

PatternStats stats_in_blocks(const sparse::Csr<float>& occupied, BlockShape block) {
  PatternStats stats = sparse::pattern_stats(occupied);
  stats.block = block;
  return stats;
}

}  // namespace tessera::tools
