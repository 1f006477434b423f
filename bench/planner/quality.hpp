#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/bench/planner/simulate.hpp"
#include "tessera/tests/planner/recorded_plans.hpp"

namespace tessera::bench {

// What to compare.
struct QualityRequest {
  std::vector<std::string> rows;  // ids of the recorded plans; empty: drawn from the seed
  std::uint64_t seed = 1;         // of the draw and of the patterns
  bool told = false;       // uniform: our planner is told the pattern, as sparse_fc_layer does
  std::size_t nearby = 0;  // uniform: also run so many of the cheapest partitions
};

// A layer under our plan and under PopLibs' partition, pinned by constraints, on the same machine
// and pattern.
struct Comparison {
  std::string name;
  Problem problem;
  Dims poplibs_partition;
  Run ours, pinned;  // buckets sized by our planner, knowing as much of the pattern as each other
  Run as_poplibs;    // PopLibs' plan as it is; its buckets know nothing of the pattern
  // The least simulated cycles of ours, the pinned and `nearby` partitions, whichever knew it.
  std::optional<Cycles> best_nearby;

  // Simulated cycles, ours / another; none when either did not run.
  std::optional<double> to_pinned() const;
  std::optional<double> to_poplibs() const;
  // Planned cycles, ours / pinned. No partition has fewer (tested against enumeration): so much is
  // there to be had as far as the planner can tell.
  std::optional<double> planned_to_pinned() const;
  // best_nearby / pinned: what a planner that foresees the engine's figure would reach at least.
  std::optional<double> nearby_to_pinned() const;
};

// 60 rows, drawn by the seed from those whose PopLibs plan keeps to its memory bound and whose
// passes have at most a billion multiply-adds each, with uniform random patterns. No plan is told
// them.
std::vector<Comparison> compare_uniform(const QualityRequest& request, Executor& executor);

// 30 rows drawn likewise from those of density 1/4 and less and at most 2^22 blocks, with the five
// skews in turn; named rows with all five. Our planner is told the pattern.
std::vector<Comparison> compare_skewed(const QualityRequest& request, Executor& executor);

// Of a ratio, over the comparisons that have it: the geometric mean and the largest; both 0 when
// none has.
using Ratio = std::optional<double> (Comparison::*)() const;
struct Summary {
  std::int64_t count = 0;
  double mean = 0, worst = 0;
};
Summary summary(const std::vector<Comparison>& comparisons, Ratio ratio);

// A table, a summary below it and, when asked, every run with planned and simulated cycles phase by
// phase.
std::string to_text(const std::vector<Comparison>& comparisons, bool verbose);

}  // namespace tessera::bench
