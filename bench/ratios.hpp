#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace tessera::bench {

// Ratios of measurements, of which a benchmark tells the mean and the extremes.
class Ratios {
 public:
  void add(double ratio) { ratios_.push_back(ratio); }

  std::size_t count() const { return ratios_.size(); }
  bool empty() const { return ratios_.empty(); }
  // These return not a number where there is no ratio, which meets no bar.
  double mean() const {  // geometric
    double logs = 0;
    for (const double ratio : ratios_) logs += std::log(ratio);
    return std::exp(logs / double(count()));
  }
  double least() const { return empty() ? kNone : *std::min_element(begin(), end()); }
  double largest() const { return empty() ? kNone : *std::max_element(begin(), end()); }

  std::int64_t count_below(double limit) const {
    return std::count_if(begin(), end(), [limit](double ratio) { return ratio < limit; });
  }
  std::int64_t count_above(double limit) const {
    return std::count_if(begin(), end(), [limit](double ratio) { return ratio > limit; });
  }
  // These return shares, of 100.
  double percent_below(double limit) const { return percent(count_below(limit)); }
  double percent_above(double limit) const { return percent(count_above(limit)); }

 private:
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  std::vector<double>::const_iterator begin() const { return ratios_.begin(); }
  std::vector<double>::const_iterator end() const { return ratios_.end(); }
  double percent(std::int64_t part) const { return 100 * double(part) / double(count()); }

  std::vector<double> ratios_;
};

}  // namespace tessera::bench
