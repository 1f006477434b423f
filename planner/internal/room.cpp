#include "tessera/planner/internal/room.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tessera::planner::internal {
namespace {

// log(n!), Stirling's series from 16 on: the next term is below 1e-10 there. std::lgamma writes a
// global.
double log_factorial(std::int64_t n) {
  if (n < 16) {
    double product = 1;
    for (std::int64_t i = 2; i <= n; ++i) product *= static_cast<double>(i);
    return std::log(product);
  }
  const double x = static_cast<double>(n);
  constexpr double kHalfLogTwoPi = 0.91893853320467274178;
  return (x + 0.5) * std::log(x) - x + kHalfLogTwoPi + 1 / (12 * x) - 1 / (360 * x * x * x);
}

// log of a bound on P(more than n are filled), for n at or above the mean.
double log_tail(const Scatter& s, std::int64_t n) {
  const std::int64_t k = n + 1;
  if (k > s.places) return -INFINITY;
  const double log_point = log_factorial(s.places) - log_factorial(k) -
                           log_factorial(s.places - k) +
                           static_cast<double>(k) * std::log(s.density) +
                           static_cast<double>(s.places - k) * std::log1p(-s.density);
  const double next_to_this = static_cast<double>(s.places - k) * s.density /
                              (static_cast<double>(k + 1) * (1 - s.density));
  return log_point - std::log1p(-std::min(next_to_this, 0.999));
}

// Mean of the largest of n standard normal numbers: exact for none and one, to 0.02 from 6 on.
double mean_of_largest_normal(double n) {
  if (n < 2) return 0;
  constexpr double kLogFourPi = 2.5310242469692907, kEulerGamma = 0.5772156649015329;
  const double root = std::sqrt(2 * std::log(n));
  return std::max(0.0,
                  root - (std::log(root * root / 2) + kLogFourPi - 2 * kEulerGamma) / (2 * root));
}

}  // namespace

double mean_of_fullest(const Scatter& s) {
  const double mean = static_cast<double>(s.places) * std::min(1.0, s.density);
  if (s.density <= 0 || s.places == 0) return 0;
  const auto whole = static_cast<double>(s.size), most = static_cast<double>(s.most);
  if (s.density >= 1 || s.cells == 1) return std::min(most, whole * mean);
  // Many in a cell scatter normally, and adding up their tails would take as many steps as they
  // spread.
  constexpr double kNormalVariance = 100;
  const double variance = mean * (1 - s.density);
  if (variance > kNormalVariance) {
    const double beyond =
        std::sqrt(variance) * mean_of_largest_normal(static_cast<double>(s.cells));
    return std::min(most, whole * (mean + beyond));
  }
  Scatter median = s;
  median.confidence = 0.5, median.size = 1, median.most = std::numeric_limits<std::int64_t>::max();
  const std::int64_t middle = room_for_every_cell(median);
  const auto some_has_more = [&](std::int64_t n) {
    return -std::expm1(-static_cast<double>(s.cells) * std::exp(std::min(0.0, log_tail(s, n))));
  };
  // The distribution of the largest of many is narrow: a few steps to either side hold all of it.
  constexpr double kNothing = 1e-3;
  double sum = static_cast<double>(middle);
  double more = 1;
  for (std::int64_t n = middle; more > kNothing && n < s.places; ++n)
    sum += more = some_has_more(n);
  double not_more = 1;
  for (std::int64_t n = middle - 1; not_more > kNothing && static_cast<double>(n) > mean; --n)
    sum -= not_more = 1 - some_has_more(n);
  return std::min(most, whole * std::max(mean, sum));
}

double chance_of_more_than(const Scatter& s, std::int64_t n) {
  if (s.density <= 0 || n >= std::min(s.most, s.places * s.size)) return 0;
  n /= s.size;
  if (s.density >= 1 || static_cast<double>(n) < static_cast<double>(s.places) * s.density)
    return 1;
  return std::min(1.0, static_cast<double>(s.cells) * std::exp(log_tail(s, n)));
}

std::int64_t room_for_every_cell(const Scatter& s) {
  if (s.density <= 0 || s.places == 0) return 0;
  if (s.density >= 1) return std::min(s.most, s.places * s.size);
  const double allowed = std::log((1 - s.confidence) / static_cast<double>(s.cells));
  const auto enough = [&](std::int64_t n) { return log_tail(s, n) <= allowed; };
  const double mean = static_cast<double>(s.places) * s.density;
  auto low = static_cast<std::int64_t>(std::floor(mean)) - 1;  // taken as not enough
  std::int64_t step = 1;
  while (low + step < s.places && !enough(low + step)) {
    low += step;
    step *= 2;
  }
  std::int64_t high = std::min(low + step, s.places);
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (enough(middle) ? high : low) = middle;
  }
  return std::min(s.most, s.size * std::max<std::int64_t>(high, 0));
}

}  // namespace tessera::planner::internal
