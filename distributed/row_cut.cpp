#include "tessera/distributed/row_cut.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"

namespace tessera::distributed {

RowCut cut_evenly(std::span<const std::int64_t> row_begin, std::int64_t rows,
                  std::int64_t block_rows, int ranks) {
  if (ranks < 1 || row_begin.empty() || row_begin.front() != 0)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("rows cannot be cut for {} ranks; 1 or more can be, by the positions "
                            "of rows that begin with 0",
                            ranks));
  if (row_begin.back() == 0) return cut_rows(rows, block_rows, ranks);
  RowCut cut;
  std::size_t row = 0;
  for (int rank = 1; rank < ranks; ++rank) {
    const double target = double(row_begin.back()) * rank / ranks;
    while (row + 1 < row_begin.size() &&
           double(row_begin[row + 1]) - target <= target - double(row_begin[row]))
      ++row;
    cut.begin.push_back(std::min(std::int64_t(row) * block_rows, rows));
  }
  cut.begin.push_back(rows);
  return cut;
}

RowCut cut_rows(std::int64_t rows, std::int64_t block_rows, int ranks) {
  RowCut cut;
  const std::int64_t all = ceil_div(rows, block_rows);
  for (int rank = 0; rank < ranks; ++rank)
    cut.begin.push_back(std::min(even_part(all, ranks, rank).end * block_rows, rows));
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

}  // namespace tessera::distributed
