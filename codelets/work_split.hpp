#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/base/dims.hpp"

namespace tessera::codelets {

// What one worker of a tile takes of a [rows][cols] job.
struct WorkShare {
  Range rows, cols;

  friend bool operator==(const WorkShare&, const WorkShare&) = default;
};

// Cuts a [rows][cols] job between at most `workers` workers. Replaces the content of `shares`.
//   row_weights  empty, or the work of each row [rows]
// With weights and rows > 2 * workers: whole rows, cut where the running sum of weights passes
// equal shares; a worker without rows is left out. Otherwise: equal rectangles, the last of each
// direction takes the remainder, then the largest is halved along its longer side until every
// worker has one. The order of the result is part of the contract: worker entries are written in
// it. Nothing to share (rows or cols 0) gives no shares. Example: 10 x 4 between 6 workers gives
// four shares of 2 x 4 and two of 2 x 2. rows, cols >= 0, workers >= 1, row_weights empty or one
// per row: else Error{InvalidArgument}. O(rows + workers^2 log(workers)); allocates only when
// `shares` has to grow. Thread-safe.
void split_between_workers(std::int64_t rows, std::int64_t cols, std::int64_t workers,
                           std::span<const std::int64_t> row_weights,
                           std::vector<WorkShare>& shares);

// The same as a new list.
std::vector<WorkShare> split_between_workers(std::int64_t rows, std::int64_t cols,
                                             std::int64_t workers,
                                             std::span<const std::int64_t> row_weights = {});

}  // namespace tessera::codelets
