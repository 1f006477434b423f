#pragma once

#include <string>
#include <vector>

#include "tessera/bench/planner/simulate.hpp"
#include "tessera/tests/planner/recorded_plans.hpp"

namespace tessera::bench {

// What to compare.
struct QualityRequest {
  std::vector<std::string> rows;  // ids of the recorded plans; empty: drawn from the seed
  std::uint64_t seed = 1;         // of the draw and of the patterns
};

// Our plan and PopLibs' partition, pinned by constraints, on the same machine and pattern.
struct Comparison {
  std::string name;
  planner::Problem problem;
  Dims poplibs_partition;
  Run ours, pinned;
  Run pinned_told;  // skewed patterns only: buckets sized for the pattern, which PopLibs cannot

  // Simulated cycles, ours / pinned; none when either did not run.
  std::optional<double> ratio() const;
  // The planner's figures for ours and for the pinned plan that knows as much of the pattern. No
  // partition has a lower one (tested against enumeration): so much is there to be had.
  std::optional<double> least_ratio() const;
  std::optional<double> ratio_told() const;
};

// Draws `count` rows whose PopLibs plan fits the tile and whose passes take at most
// kMostWork multiply-adds each, in the table's order of a seeded shuffle. No plan is told the
// pattern.
std::vector<Comparison> compare_uniform(const QualityRequest& request, Executor& executor);

// Sizes drawn likewise among those of density 1/4 and less, with the five skews in turn; named rows
// with all five. Our plan is told the pattern; `pinned` has PopLibs' bucket sizes.
std::vector<Comparison> compare_skewed(const QualityRequest& request, Executor& executor);

// Of some ratios: the geometric mean and the largest; both 0 when there are none.
struct Summary {
  std::int64_t count = 0;
  double mean = 0, worst = 0;
};
Summary summary(const std::vector<std::optional<double>>& ratios);

// A table, a summary below it and, when asked, every run with planned and simulated cycles phase by
// phase.
std::string to_text(const std::vector<Comparison>& comparisons, bool verbose);

}  // namespace tessera::bench
