#include "tessera/codelets/work_split.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"

namespace tessera::codelets {
namespace {

std::int64_t area(const WorkShare& share) { return share.rows.size() * share.cols.size(); }

void split_by_weight(std::int64_t cols, std::int64_t workers,
                     std::span<const std::int64_t> row_weights, std::vector<WorkShare>& shares) {
  const std::int64_t rows = std::ssize(row_weights);
  const std::int64_t total =
      std::accumulate(row_weights.begin(), row_weights.end(), std::int64_t{});
  const std::int64_t fair = ceil_div(total, workers);
  std::int64_t begin = 0, end = 0, sum = 0;
  for (std::int64_t worker = 0; worker < workers; ++worker) {
    if (worker + 1 == workers) end = rows;
    for (; end < rows && sum + row_weights[end] <= (worker + 1) * fair; ++end)
      sum += row_weights[end];
    if (end > begin) shares.push_back({{begin, end}, {0, cols}});
    begin = end;
  }
}

// The last share of each direction extends to the end and so takes the remainder.
void split_in_rectangles(std::int64_t rows, std::int64_t cols, std::int64_t workers,
                         std::vector<WorkShare>& shares) {
  const std::int64_t target = ceil_div(rows * cols, workers);
  const std::int64_t share_rows = std::min(ceil_div(target, cols), rows);
  const std::int64_t share_cols = std::min(ceil_div(target, share_rows), cols);
  const std::int64_t row_cuts = rows / share_rows, col_cuts = cols / share_cols;
  for (std::int64_t r = 0; r < row_cuts; ++r)
    for (std::int64_t c = 0; c < col_cuts; ++c)
      shares.push_back({{r * share_rows, r + 1 == row_cuts ? rows : (r + 1) * share_rows},
                        {c * share_cols, c + 1 == col_cuts ? cols : (c + 1) * share_cols}});
}

// Halves the largest share: its first half is appended to the list, its second half stays in place.
// Returns false if there is nothing to halve.
bool halve_largest(std::vector<WorkShare>& shares) {
  // Insertion sort is stable, at most a few entries are out of order, and it never allocates.
  for (std::size_t i = 1; i < shares.size(); ++i)
    for (std::size_t j = i; j > 0 && area(shares[j]) > area(shares[j - 1]); --j)
      std::swap(shares[j], shares[j - 1]);
  WorkShare first = shares.front();
  WorkShare& second = shares.front();
  if (area(first) <= 1) return false;
  const bool by_rows = first.rows.size() > first.cols.size();
  Range& cut = by_rows ? first.rows : first.cols;
  const std::int64_t middle = cut.begin + ceil_div(cut.size(), 2);
  cut.end = middle;
  (by_rows ? second.rows : second.cols).begin = middle;
  shares.push_back(first);
  return true;
}

}  // namespace

void split_between_workers(std::int64_t rows, std::int64_t cols, std::int64_t workers,
                           std::span<const std::int64_t> row_weights,
                           std::vector<WorkShare>& shares) {
  if (rows < 0 || cols < 0 || workers < 1 ||
      (!row_weights.empty() && std::ssize(row_weights) != rows))
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("cannot share {} rows ({} weights) x {} columns between {} workers; "
                            "sizes must be >= 0, workers >= 1, weights none or one per row",
                            rows, row_weights.size(), cols, workers));
  shares.clear();
  if (rows == 0 || cols == 0) return;
  if (!row_weights.empty() && splits_by_weight(rows, workers))
    return split_by_weight(cols, workers, row_weights, shares);
  split_in_rectangles(rows, cols, workers, shares);
  while (std::ssize(shares) < workers && halve_largest(shares)) {
  }
}

std::vector<WorkShare> split_between_workers(std::int64_t rows, std::int64_t cols,
                                             std::int64_t workers,
                                             std::span<const std::int64_t> row_weights) {
  std::vector<WorkShare> shares;
  split_between_workers(rows, cols, workers, row_weights, shares);
  return shares;
}

}  // namespace tessera::codelets
