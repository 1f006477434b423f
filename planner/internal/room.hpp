#pragma once

#include <cstdint>
#include <limits>

namespace tessera::planner::internal {

// How many of something that scatters a holder needs room for.
struct Scatter {
  std::int64_t places = 0;  // of one cell; each is filled with probability `density`, independently
  double density = 0;       // [0, 1]
  std::int64_t cells = 1;   // all of the same size
  double confidence = 0;    // [0, 1)
  std::int64_t size = 1;    // what one filled place counts for
  std::int64_t most = std::numeric_limits<std::int64_t>::max();  // a cell never holds more

  friend bool operator==(const Scatter&, const Scatter&) = default;
};

// The least n, a multiple of `size` or `most`, so that with at least that confidence no cell holds
// more. The chance that some cell does is bounded by `cells` times the binomial tail of one, and
// the tail by a geometric series, so the answer is at most 2 too large where a tenth or less may
// overflow, and a few near the mean. O(log places) with a few logarithms each; allocates nothing;
// thread-safe. Example: {places 100, density 0.1, cells 1, confidence 0.5}: 10.
std::int64_t room_for_every_cell(const Scatter& scatter);

// What the fullest cell holds on average over all patterns, by the same tail; `confidence` is not
// used. As large as the mean of a cell at least.
double mean_of_fullest(const Scatter& scatter);

// A bound on the chance that some cell holds more than n, by the same tail; 1 below the mean.
// `confidence` is not used.
double chance_of_more_than(const Scatter& scatter, std::int64_t n);

}  // namespace tessera::planner::internal
