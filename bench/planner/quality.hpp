#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/bench/planner/simulate.hpp"
#include "tessera/bench/ratios.hpp"
#include "tessera/tests/planner/recorded_plans.hpp"

namespace tessera::bench {

// Selects the layers to compare.
struct QualityRequest {
  std::vector<std::string> rows;  // ids of the recorded plans; empty: drawn from the seed
  std::uint64_t seed = 1;         // of the draw and of the patterns
  bool told = false;         // uniform: our planner is told the pattern, as sparse_fc_layer does
  std::size_t nearby = 0;    // uniform: also run so many of the cheapest partitions
  std::size_t patterns = 1;  // uniform: run both partitions on so many; other figures are of one
};

// Compares a layer under our sparse plan with the same layer under PopLibs' partition, which
// constraints pin, on the same machine and pattern.
struct Comparison {
  std::string name;
  Problem problem;
  Dims poplibs_partition;
  Run ours, pinned;  // buckets sized by our planner, knowing as much of the pattern as each other
  Run as_poplibs;    // PopLibs' plan as it is; its buckets know nothing of the pattern
  Run usual;         // ours with the planner's usual options, which may multiply all of R
  // The fewest simulated cycles of our partition, the pinned one and those in `nearby`.
  std::optional<Cycles> best_nearby;
  // The sums of the simulated cycles over several patterns, because chance fills the fullest cell
  // of one pattern, and moves the ratio of one by a tenth.
  std::optional<Cycles> ours_of_all, pinned_of_all;

  // Ratio of simulated cycles, ours to another plan's; empty if one of them did not run.
  std::optional<double> to_pinned() const;
  std::optional<double> to_poplibs() const;
  std::optional<double> usual_to_pinned() const;
  // Ratio of planned cycles, ours to the pinned plan's. No partition has fewer planned cycles than
  // ours (a test compares with enumeration), so this is the largest gain that the planner predicts.
  std::optional<double> planned_to_pinned() const;
  // The same over several patterns.
  std::optional<double> patterns_to_pinned() const;
  // The ratio best_nearby / pinned, which a planner with exact forecasts would reach at least.
  std::optional<double> nearby_to_pinned() const;
};

// Compares 60 rows with uniform random patterns. The seed draws them from the rows whose PopLibs
// plan keeps to its memory bound and whose passes have at most a billion multiply-adds each. The
// planner does not see the patterns.
std::vector<Comparison> compare_uniform(const QualityRequest& request, Executor& executor);

// Compares 30 rows, drawn the same way from those with a density of at most 1/4 and at most 2^22
// blocks, with the five skews in turn; named rows run with all five. Our planner sees the pattern.
std::vector<Comparison> compare_skewed(const QualityRequest& request, Executor& executor);

// Returns a ratio of all comparisons that have it.
using Ratio = std::optional<double> (Comparison::*)() const;
Ratios ratios_of(const std::vector<Comparison>& comparisons, Ratio ratio);

// Formats a table and a summary. If `verbose`, every run follows with its planned and simulated
// cycles, phase by phase.
std::string to_text(const std::vector<Comparison>& comparisons, bool verbose);

}  // namespace tessera::bench
