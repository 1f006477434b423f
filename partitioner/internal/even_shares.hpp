#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/codelets/work_split.hpp"

namespace tessera::partitioner::internal {

// EvenShares remembers how jobs of some sizes are split between workers without weights. Most
// buckets of a matrix have one of a few sizes, and a split takes about as long as writing twenty
// non-zeros. An object must not be used by several threads.
class EvenShares {
 public:
  explicit EvenShares(std::int64_t workers) : workers_(workers) {}

  // Returns the shares of codelets::split_between_workers. They are valid until the next call.
  std::span<const codelets::WorkShare> of(std::int64_t rows, std::int64_t cols) {
    // One of the two numbers is the same for all records of a matrix, so jobs differ in their
    // product.
    const auto key = static_cast<std::size_t>(rows * cols);
    if (key >= kMostKept) return split(rows, cols, large_);
    if (key >= kept_.size()) kept_.resize(key + 1);
    Kept& kept = kept_[key];
    if (kept.rows == rows && kept.cols == cols) return kept.shares;
    kept.rows = rows;
    kept.cols = cols;
    return split(rows, cols, kept.shares);
  }

 private:
  // Beside this many non-zeros a split takes no time that matters.
  static constexpr std::size_t kMostKept = 1024;
  struct Kept {
    std::int64_t rows = -1, cols = -1;
    std::vector<codelets::WorkShare> shares;
  };

  std::span<const codelets::WorkShare> split(std::int64_t rows, std::int64_t cols,
                                             std::vector<codelets::WorkShare>& shares) const {
    codelets::split_between_workers(rows, cols, workers_, {}, shares);
    return shares;
  }

  std::int64_t workers_;
  std::vector<Kept> kept_;  // [rows * cols]
  std::vector<codelets::WorkShare> large_;
};

}  // namespace tessera::partitioner::internal
