#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/base/dims.hpp"
#include "tessera/base/int_math.hpp"

namespace tessera::codelets {

// The share of one worker of a tile in a [rows][cols] job.
struct WorkShare {
  Range rows, cols;

  friend bool operator==(const WorkShare&, const WorkShare&) = default;
};

// Returns true if the weights of the rows of a job decide how it is split. With few rows they do
// not matter.
constexpr bool splits_by_weight(std::int64_t rows, std::int64_t workers) {
  return rows > 2 * workers;
}

// Cuts a [rows][cols] job between at most `workers` workers. Replaces the content of `shares`.
//   row_weights  empty, or the work of each row [rows]
// With weights and rows > 2 * workers, workers get whole rows, cut where the running sum of weights
// passes equal shares; a worker without rows is left out. Otherwise they get equal rectangles, of
// which the last in each direction takes the remainder; then the largest rectangle is halved along
// its longer side until every worker has one. Without work (rows or cols 0) there are no shares.
// The order of the result is part of the contract, because worker entries are written in that
// order. Example: 10 x 4 between 6 workers gives four shares of 2 x 4 and two of 2 x 2.
//
// Throws Error{InvalidArgument} unless rows, cols >= 0, workers >= 1, and row_weights is empty or
// has one weight per row. O(rows + workers^2 log(workers)); allocates only if `shares` has to grow.
// Thread-safe.
void split_between_workers(std::int64_t rows, std::int64_t cols, std::int64_t workers,
                           std::span<const std::int64_t> row_weights,
                           std::vector<WorkShare>& shares);

// Splits rows by weight, as split_between_workers does where splits_by_weight(rows, workers), from
// sums of the weights: sum_of(n) is the weight of the first n rows, 1 <= n <= rows. No weight may
// be negative. O(workers * log(rows)).
template <class SumOf>
void split_by_sums(std::int64_t rows, std::int64_t cols, std::int64_t workers, SumOf&& sum_of,
                   std::vector<WorkShare>& shares) {
  shares.clear();
  const std::int64_t fair = ceil_div(sum_of(rows), workers);
  for (std::int64_t worker = 0, begin = 0; worker < workers; ++worker) {
    // The most rows whose sum keeps to the share of the workers so far. The search has no branches
    // that depend on the sums, because a processor would mispredict them, and begins at the first
    // row, so that a processor can search for several workers at once.
    std::int64_t end = 0;
    for (std::int64_t left = rows; left > 0;) {
      const std::int64_t half = (left + 1) / 2;
      end += sum_of(end + half) <= (worker + 1) * fair ? half : 0;
      left -= half;
    }
    if (worker + 1 == workers) end = rows;
    if (end > begin) shares.push_back({{begin, end}, {0, cols}});
    begin = end;
  }
}

// Returns the shares as a new list.
std::vector<WorkShare> split_between_workers(std::int64_t rows, std::int64_t cols,
                                             std::int64_t workers,
                                             std::span<const std::int64_t> row_weights = {});

}  // namespace tessera::codelets
