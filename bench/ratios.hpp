#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace tessera::bench {

// Ratios of measurements, of which a benchmark tells the mean and the extremes.
class Ratios {
 public:
  void add(double ratio) { ratios_.push_back(ratio); }

  std::size_t count() const { return ratios_.size(); }
  bool empty() const { return ratios_.empty(); }
  // The geometric mean, the least and the largest one; not a number where there is none.
  double mean() const {
    double logs = 0;
    for (const double ratio : ratios_) logs += std::log(ratio);
    return std::exp(logs / double(count()));
  }
  double least() const { return empty() ? kNone : *std::min_element(begin(), end()); }
  double largest() const { return empty() ? kNone : *std::max_element(begin(), end()); }

  // The shares, of 100, of the ratios on one side of a limit.
  double percent_below(double limit) const {
    return percent([limit](double ratio) { return ratio < limit; });
  }
  double percent_above(double limit) const {
    return percent([limit](double ratio) { return ratio > limit; });
  }

 private:
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  std::vector<double>::const_iterator begin() const { return ratios_.begin(); }
  std::vector<double>::const_iterator end() const { return ratios_.end(); }
  template <class Condition>
  double percent(Condition condition) const {
    return 100.0 * double(std::count_if(begin(), end(), condition)) / double(count());
  }

  std::vector<double> ratios_;
};

}  // namespace tessera::bench
