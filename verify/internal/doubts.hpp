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
  Doubts(std::int64_t rows, std::int64_t cols, const Rounding& rounding, const MemoryDamage& damage)
      : rounding_(rounding),
        wrong_rows_(static_cast<std::size_t>(rows)),
        wrong_cols_(static_cast<std::size_t>(cols)) {
    checksums_.exact = true;
    checksums_.damaged = damage.slots;
    checksums_.first_damage = damage.first;
  }

  // Compares two sums that may differ by `allowed`; 0: that must be equal. Returns true if the
  // results that were added up must be recomputed, as they must if a figure has overflowed.
  bool compare(double expected, double got, double allowed) {
    ++checksums_.compared;
    checksums_.exact = checksums_.exact && allowed == 0;
    const double distance = std::abs(got - expected);
    const bool agrees = distance <= allowed && std::isfinite(allowed);
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
    checksums_.wrong_rows += note(row, wrong_rows_);
    checksums_.wrong_cols += note(col, wrong_cols_);
  }

  const Checksums& checksums() const { return checksums_; }

 private:
  // Returns true if this row or column was not known to be wrong.
  static bool note(std::int64_t index, std::vector<bool>& wrong) {
    const bool is_known = wrong[static_cast<std::size_t>(index)];
    wrong[static_cast<std::size_t>(index)] = true;
    return !is_known;
  }

  Rounding rounding_;
  Checksums checksums_;
  std::vector<bool> wrong_rows_, wrong_cols_;
};

}  // namespace tessera::verify::internal
