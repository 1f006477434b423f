#include "tessera/planner/internal/capacity.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace tessera::planner::internal {
namespace {

// Returns log(n!). Uses Stirling's series from 16 on, where the next term is below 1e-10.
// std::lgamma is not used because it writes a global.
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

// The logarithm of an upper bound of P(more than n are filled), for n at or above the mean.
class Tail {
 public:
  explicit Tail(const Scatter& s)
      : places_(s.places),
        odds_(s.density / (1 - s.density)),
        log_filled_(std::log(s.density)),
        log_empty_(std::log1p(-s.density)),
        log_orders_(log_factorial(s.places)) {}

  double log_of(std::int64_t n) const {
    const std::int64_t k = n + 1, rest = places_ - k;
    if (rest < 0) return -INFINITY;
    const double log_point = log_orders_ - log_factorial(k) - log_factorial(rest) +
                             static_cast<double>(k) * log_filled_ +
                             static_cast<double>(rest) * log_empty_;
    const double next_to_this = static_cast<double>(rest) / static_cast<double>(k + 1) * odds_;
    return log_point - std::log1p(-std::min(next_to_this, 0.999));
  }

 private:
  std::int64_t places_;
  double odds_, log_filled_, log_empty_, log_orders_;
};

// Returns a remembered answer, or computes and keeps it. A search asks for the same cells with
// every cut of the batch and for every method. The table belongs to the thread, and its contents
// never change an answer.
template <class Value, class Compute>
Value remembered(const Scatter& s, std::int64_t hands, Compute&& compute) {
  struct Entry {
    Scatter of{.places = -1};
    std::int64_t hands = 1;
    Value value{};
  };
  constexpr std::size_t kEntries = 4096;
  thread_local std::vector<Entry> entries(kEntries);  // made where a thread plans
  const auto mixed = static_cast<std::uint64_t>(s.places) * 0x9e3779b97f4a7c15u +
                     static_cast<std::uint64_t>(s.cells) * 0xc2b2ae3d27d4eb4fu +
                     static_cast<std::uint64_t>(hands - 1) * 0x165667b19e3779f9u;
  Entry& entry = entries[(mixed >> 40) % kEntries];
  if (entry.of == s && entry.hands == hands) return entry.value;
  entry.value = compute();
  entry.of = s;
  entry.hands = hands;
  return entry.value;
}

// The count of a cell of so much variance is nearly normal, and the sum of its tails would take as
// many steps as its spread.
constexpr double kNormalVariance = 100;

std::int64_t least_room(const Scatter& s) {
  const double allowed = std::log((1 - s.confidence) / static_cast<double>(s.cells));
  const Tail tail(s);
  const auto enough = [&](std::int64_t n) { return tail.log_of(n) <= allowed; };
  const double mean = static_cast<double>(s.places) * s.density;
  auto low = static_cast<std::int64_t>(std::floor(mean)) - 1;  // assumed to be too small
  auto step = std::max<std::int64_t>(1, std::llround(2 * std::sqrt(mean)));
  while (low + step < s.places && !enough(low + step)) {
    low += step;
    step *= 2;
  }
  std::int64_t high = std::min(low + step, s.places);
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (enough(middle) ? high : low) = middle;
  }
  return std::max<std::int64_t>(high, 0);
}

// Returns the mean of the fullest cell: sums the chances that it holds more than n, upwards and
// downwards from its median.
double mean_by_tails(const Scatter& s, double mean) {
  Scatter median = s;
  median.confidence = 0.5;
  const std::int64_t middle = least_room(median);
  const Tail tail(s);
  const auto some_has_more = [&](std::int64_t n) {
    return -std::expm1(-static_cast<double>(s.cells) * std::exp(std::min(0.0, tail.log_of(n))));
  };
  // The distribution of the largest of many is narrow, so a few steps to either side cover it.
  constexpr double kNothing = 1e-2;
  double sum = static_cast<double>(middle);
  double more = 1;
  for (std::int64_t n = middle; more > kNothing && n < s.places; ++n)
    sum += more = some_has_more(n);
  double not_more = 1;
  for (std::int64_t n = middle - 1; not_more > kNothing && static_cast<double>(n) > mean; --n)
    sum -= not_more = 1 - some_has_more(n);
  return std::max(mean, sum);
}

// The chance that the fullest of all cells holds more than a number of filled places.
class FullestTail {
 public:
  explicit FullestTail(const Scatter& s)
      : tail_(s),
        cells_(static_cast<double>(s.cells)),
        mean_(static_cast<double>(s.places) * s.density),
        variance_(mean_ * (1 - s.density)) {}

  double more_than(std::int64_t n) const {
    if (static_cast<double>(n) < mean_) return 1;
    return -std::expm1(-cells_ * of_one(n));
  }

 private:
  double of_one(std::int64_t n) const {
    if (variance_ <= kNormalVariance) return std::exp(std::min(0.0, tail_.log_of(n)));
    return 0.5 * std::erfc((static_cast<double>(n) + 0.5 - mean_) / std::sqrt(2 * variance_));
  }

  Tail tail_;
  double cells_, mean_, variance_;
};

// A hand has more than k items if the cell has more than k * hands.
double mean_hand_by_tails(const Scatter& s, std::int64_t hands) {
  constexpr double kNothing = 1e-3;
  const FullestTail tail(s);
  const double mean = static_cast<double>(s.places * s.size) * s.density;
  auto k = static_cast<std::int64_t>(std::ceil(mean / static_cast<double>(hands)));
  double sum = static_cast<double>(k), more = 1;
  for (; more > kNothing && k * hands < std::min(s.most, s.places * s.size); ++k)
    sum += more = tail.more_than(k * hands / s.size);
  return sum;
}

}  // namespace

double largest_normal(double n, double middle) {
  if (n < 2) return 0;
  constexpr double kLogFourPi = 2.5310242469692907;
  const double root = std::sqrt(2 * std::log(n));
  return root - (std::log(root * root / 2) + kLogFourPi - 2 * middle) / (2 * root);
}

double mean_hand_of_fullest(const Scatter& s, std::int64_t hands) {
  const double fullest = mean_of_fullest(s);
  if (fullest <= 0 || s.density >= 1 || s.cells == 1)
    return std::ceil(fullest / static_cast<double>(hands));
  return remembered<double>(s, hands, [&] { return mean_hand_by_tails(s, hands); });
}

double mean_of_fullest(const Scatter& s) {
  const double mean = static_cast<double>(s.places) * std::min(1.0, s.density);
  if (s.density <= 0 || s.places == 0) return 0;
  const auto whole = static_cast<double>(s.size), most = static_cast<double>(s.most);
  if (s.density >= 1 || s.cells == 1) return std::min(most, whole * mean);
  const double variance = mean * (1 - s.density);
  if (variance > kNormalVariance) {
    const double beyond =
        std::sqrt(variance) * largest_normal(static_cast<double>(s.cells), kMeanOfLargest);
    return std::min(most, whole * (mean + beyond));
  }
  return std::min(most, whole * remembered<double>(s, 1, [&] { return mean_by_tails(s, mean); }));
}

double chance_of_more_than(const Scatter& s, std::int64_t n) {
  if (s.density <= 0 || n >= std::min(s.most, s.places * s.size)) return 0;
  n /= s.size;
  if (s.density >= 1 || static_cast<double>(n) < static_cast<double>(s.places) * s.density)
    return 1;
  return std::min(1.0, static_cast<double>(s.cells) * std::exp(Tail(s).log_of(n)));
}

std::int64_t room_for_every_cell(const Scatter& s) {
  if (s.density <= 0 || s.places == 0) return 0;
  if (s.density >= 1) return std::min(s.most, s.places * s.size);
  return std::min(s.most, s.size * remembered<std::int64_t>(s, 1, [&] { return least_room(s); }));
}

}  // namespace tessera::planner::internal
