#pragma once

#include <cstdint>
#include <limits>

namespace tessera::planner::internal {

// A random pattern over cells of equal size, for which the capacity of a cell is computed.
struct Scatter {
  std::int64_t places = 0;  // of one cell; each is filled independently with probability `density`
  double density = 0;       // [0, 1]
  std::int64_t cells = 1;   // number of cells
  double confidence = 0;    // [0, 1)
  std::int64_t size = 1;    // items per filled place
  std::int64_t most = std::numeric_limits<std::int64_t>::max();  // items that a cell can hold

  friend bool operator==(const Scatter&, const Scatter&) = default;
};

// Returns the least capacity n, a multiple of `size` or equal to `most`, such that with at least
// the given confidence no cell holds more. The chance that some cell holds more is bounded by
// `cells` times the binomial tail of one cell, and the tail by a geometric series. The answer is
// therefore too large by at most 2 if the chance of an overflow may be a tenth or less, and by a
// few near the mean. Costs O(log places) steps with a few logarithms each. Allocates nothing. Any
// number of threads may call it. Example: {places 100, density 0.1, cells 1, confidence 0.5}
// gives 10.
std::int64_t room_for_every_cell(const Scatter& scatter);

// Returns the mean over all patterns of the number that the fullest cell holds, by the same tail.
// It is at least the mean of a cell. Does not use `confidence`.
double mean_of_fullest(const Scatter& scatter);

// Returns the mean over all patterns of ceil(n / hands), by the same tail, where n is the number
// that the fullest cell holds: what the busiest gets if so many hands share it as evenly as whole
// items allow. With few items it is well above mean_of_fullest() / hands, rounded up or not.
// Example: 16 hands for a fullest cell of 15.3 in the mean are 1.4 and not 1, because it often
// holds 17.
double mean_hand_of_fullest(const Scatter& scatter, std::int64_t hands);

// Returns a middle of the largest of n standard normal numbers: exact for 0 and 1, accurate to 0.02
// from 6 on.
inline constexpr double kMeanOfLargest = 0.5772156649015329;     // Euler's constant
inline constexpr double kMedianOfLargest = 0.36651292058166435;  // -log(log(2))
double largest_normal(double n, double middle);

// Returns an upper bound of the chance that some cell holds more than n, by the same tail; 1 if n
// is below the mean of a cell. Does not use `confidence`.
double chance_of_more_than(const Scatter& scatter, std::int64_t n);

}  // namespace tessera::planner::internal
