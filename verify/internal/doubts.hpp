#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "tessera/verify/internal/exact_result.hpp"
#include "tessera/verify/self_check.hpp"

namespace tessera::verify::internal {

// The outcome of a check while it runs: takes the differences of sums, then the results in doubt.
class Doubts {
 public:
  Doubts(std::int64_t cols, const Rounding& rounding, const MemoryDamage& damage)
      : rounding_(rounding), wrong_cols_(static_cast<std::size_t>(cols)) {
    checksums_.exact = true;
    checksums_.damaged = damage.slots;
    checksums_.first_damage = damage.first;
  }

  // Compares two sums that may differ by `allowed`; 0: that must be equal. Returns true if the
  // results of this row must be recomputed.
  bool compare(double expected, double got, double allowed) {
    ++checksums_.compared;
    checksums_.exact = checksums_.exact && allowed == 0;
    const double distance = std::abs(got - expected);
    // A result that is infinite makes the allowed distance infinite too.
    const bool agrees = distance <= allowed && std::isfinite(distance);
    if (agrees && allowed > 0) checksums_.worst = std::max(checksums_.worst, distance / allowed);
    return !agrees || checksums_.damaged > 0;
  }

  // Takes a result that was recomputed.
  void recompute(double got, const ExactResult& exact, std::int64_t row, std::int64_t col) {
    ++checksums_.recomputed;
    const double excess = exact.excess(got, rounding_);
    const bool is_wrong = !(excess <= 1.0);  // true for NaN
    checksums_.worst = std::max(checksums_.worst, std::isnan(excess) ? HUGE_VAL : excess);
    if (!is_wrong) return;
    if (checksums_.ok()) {
      checksums_.first_wrong_row = row;
      checksums_.first_wrong_col = col;
    }
    checksums_.wrong_rows += row != last_wrong_row_;
    last_wrong_row_ = row;
    checksums_.wrong_cols += !wrong_cols_[static_cast<std::size_t>(col)];
    wrong_cols_[static_cast<std::size_t>(col)] = true;
  }

  const Checksums& checksums() const { return checksums_; }

 private:
  Rounding rounding_;
  Checksums checksums_;
  std::int64_t last_wrong_row_ = -1;  // results are recomputed row by row
  std::vector<bool> wrong_cols_;
};

}  // namespace tessera::verify::internal
