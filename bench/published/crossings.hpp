#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/bench/published/published.hpp"

namespace tessera::bench {

// A sparse product beside the dense one of the same size and type, each with its best batch. A
// ratio is the dense time divided by the sparse one, so sparse pays where it is above 1.
struct SpeedUp {
  DataType type = DataType::Half;
  BlockShape block;
  double density = 0;
  std::optional<double> published;  // empty: nothing is published for this density
  std::optional<double> ours;       // empty: no plan fits
};

// The density at which sparse stops paying, as far as ratios at some densities tell.
struct Crossing {
  std::optional<double> at;  // between two of the densities
  double above = 0;          // the largest density at which sparse still pays
  double below = 1;          // the smallest density at which it no longer does
};

// Returns the crossing of ratios, given as {density, ratio} with ascending densities. Between two
// densities, the logarithm of the ratio is linear in the logarithm of the density.
Crossing crossing_of(const std::vector<std::pair<double, double>>& ratios);

// Returns the points of published dynamic products with m = k = 4096 on one Bow IPU and, without
// published rates, the densities between and beyond them that place our own crossings.
std::vector<PublishedPoint> crossing_points();

// Returns the dense rate of a type for m = k = 4096 in 10^12 flops per second, the best over all
// batches. It was read off published plots with an accuracy of 1.5 %.
double published_dense_rate(DataType type);

// Repeats the points as repeat() does, and plans the dense products for the same batches. Takes
// half a minute for the points above.
std::vector<SpeedUp> speed_ups(const std::vector<PublishedPoint>& points, const Repetition& how,
                               Executor& executor);

// Returns the ratios and the crossings of every type and block, published beside ours, with the
// errors of ours. Lines have at most 100 columns.
std::string to_text(const std::vector<SpeedUp>& ratios, const Repetition& how);

}  // namespace tessera::bench
