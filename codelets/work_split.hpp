#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/base/dims.hpp"

namespace tessera::codelets {

// The share of one worker of a tile in a [rows][cols] job.
struct WorkShare {
  Range rows, cols;

  friend bool operator==(const WorkShare&, const WorkShare&) = default;
};

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

// Returns the shares as a new list.
std::vector<WorkShare> split_between_workers(std::int64_t rows, std::int64_t cols,
                                             std::int64_t workers,
                                             std::span<const std::int64_t> row_weights = {});

}  // namespace tessera::codelets
