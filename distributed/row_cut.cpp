#include "tessera/distributed/row_cut.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"

namespace tessera::distributed {

RowCut cut_evenly(std::span<const std::int64_t> blocks, std::int64_t rows, std::int64_t block_rows,
                  int ranks) {
  if (ranks < 1)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("rows cannot be cut for {} ranks; 1 or more can be", ranks));
  const std::int64_t all = std::accumulate(blocks.begin(), blocks.end(), std::int64_t{0});
  if (all == 0) return cut_rows(rows, block_rows, ranks);
  RowCut cut;
  std::int64_t row = 0, before = 0;  // block rows passed, and their blocks
  for (int rank = 1; rank < ranks; ++rank) {
    const double target = double(all) * rank / ranks;
    while (row < std::ssize(blocks)) {
      const std::int64_t after = before + blocks[std::size_t(row)];
      if (double(after) - target > target - double(before)) break;
      before = after;
      ++row;
    }
    cut.begin.push_back(std::min(row * block_rows, rows));
  }
  cut.begin.push_back(rows);
  return cut;
}

RowCut cut_rows(std::int64_t rows, std::int64_t block_rows, int ranks) {
  RowCut cut;
  const std::int64_t all = ceil_div(rows, block_rows);
  for (std::int64_t rank = 1; rank <= ranks; ++rank)
    cut.begin.push_back(std::min(all * rank / ranks * block_rows, rows));
  return cut;
}

void check(const RowCut& cut, std::int64_t rows, std::int64_t block_rows, int ranks) {
  const auto refuse = [](const std::string& why) {
    throw Error(ErrorCode::InvalidArgument, "cut of rows: " + why);
  };
  if (cut.ranks() != ranks)
    refuse(fmt::format("it has {} runs, but there are {} ranks", cut.ranks(), ranks));
  if (cut.begin.front() != 0 || cut.rows() != rows)
    refuse(fmt::format("it goes from {} to {}, not from 0 to {}", cut.begin.front(), cut.rows(),
                       rows));
  for (int rank = 0; rank < ranks; ++rank) {
    const Range run = cut.of(rank);
    if (run.end < run.begin || (run.begin % block_rows != 0 && run.begin != rows))
      refuse(fmt::format("run {} is [{}, {}), which is not one of whole blocks of {} rows", rank,
                         run.begin, run.end, block_rows));
  }
}

sparse::Csr<float> rows_of(const sparse::Csr<float>& matrix, Range rows) {
  const std::int64_t first = ceil_div(rows.begin, matrix.block.rows);
  const std::int64_t end = ceil_div(rows.end, matrix.block.rows);
  const std::int64_t from = matrix.row_begin[std::size_t(first)];
  const std::int64_t to = matrix.row_begin[std::size_t(end)], area = matrix.block.area();
  sparse::Csr<float> part{
      .rows = (end - first) * matrix.block.rows, .cols = matrix.cols, .block = matrix.block};
  part.row_begin.assign(matrix.row_begin.begin() + first, matrix.row_begin.begin() + end + 1);
  for (std::int64_t& position : part.row_begin) position -= from;
  part.col.assign(matrix.col.begin() + from, matrix.col.begin() + to);
  part.values.assign(matrix.values.begin() + from * area, matrix.values.begin() + to * area);
  return part;
}

}  // namespace tessera::distributed
