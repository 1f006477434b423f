#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "tessera/planner/internal/static_counted.hpp"
#include "tessera/planner/internal/static_cut_counts.hpp"
#include "tessera/planner/internal/static_estimate.hpp"

// The search of static plans by counts of the pattern.
namespace tessera::planner::internal {

// The limits that a cut must keep.
struct StaticLimits {
  std::int64_t temp = 0;                                 // bytes of temporary data on a tile
  std::int64_t bytes = 0;                                // bytes of a tile
  std::optional<std::int64_t> z_parts = {}, bands = {};  // that a cut must have

  // Returns true if a tile has the memory that this takes.
  bool hold(const PlanCost& cost) const {
    return cost.temp.value <= temp && (cost.temp + cost.resident).value <= bytes;
  }

  bool allow(std::int64_t parts_of_cut, std::int64_t bands_of_cut) const {
    return z_parts.value_or(parts_of_cut) == parts_of_cut &&
           bands.value_or(bands_of_cut) == bands_of_cut;
  }
};

// The limit that every cut breaks, as the cut comes nearest to it.
struct StaticObstacle {
  std::int64_t least_bytes = 0;  // on a tile, of any cut whose words fit
  std::int64_t least_word = 0;   // largest number of a kernel's words, of the cut with the smallest
};

// The cheapest cut that was counted.
struct CountedSearch {
  std::optional<CountedCut> best;
  PlanCost cost;
  StaticObstacle obstacle;              // of meaning only if there is no `best`
  std::int64_t counted = 0;             // cuts whose cost was counted
  std::vector<StaticRunnerUp> fitting;  // all cuts that fit, the best among them
};

// Corrections of estimates, learned from cuts that were counted: the estimates of similar cuts are
// wrong by about the same factor for every batch.
class Corrections {
 public:
  // Counted cycles by estimated ones, of the cut that is nearest among those that were counted.
  struct Nearest {
    double factor = 1, distance = 1e9;
  };

  bool is_empty() const { return counted_.empty(); }
  void learn(const CountedCut& cut, double factor);
  Nearest nearest(const CountedCut& cut) const;

  // Returns how much two cuts differ in their parts, bands and runs.
  static double distance(const CountedCut& a, const CountedCut& b);

 private:
  std::vector<std::pair<CountedCut, double>> counted_;
};

// Searches the cuts of one pattern, and keeps what it learns. One thread at a time may use it.
class StaticSearcher {
 public:
  // The arrays of `pattern` must outlive the object.
  explicit StaticSearcher(const BlockPattern& pattern) : counts_(pattern) {}

  CutCounts& counts() { return counts_; }

  // Returns the cheapest cut that was counted. All cuts are estimated, as if blocks were spread at
  // random; the most promising ones are counted, and then the neighbours of the best until none is
  // better, also with fewer tiles. A cut whose kernel, values and fixed steps alone exceed the best
  // is not counted. Corrections of an earlier search of the same passes make a search count fewer
  // cuts. The counts of `c` must be those of counts(). Deterministic.
  CountedSearch search(const StaticCase& c, const StaticLimits& limits);

 private:
  CutCounts counts_;
  // Corrections of earlier searches, by whether these have GradA, GradW, and GradA alone.
  std::map<std::tuple<bool, bool, bool>, Corrections> corrections_;
};

// Searches like this, but counts 12 to 48 cuts, the fewer the more blocks there are: two thirds are
// promising ones. Counts up to four times as many as long as none fits.
CountedSearch quick_search(const StaticCase& c, CutCounts& counts, const StaticLimits& limits);

// Returns the cheapest of the cuts that fit, at most `most`; without the best one if that is the
// plan.
std::vector<StaticRunnerUp> runner_ups(const CountedSearch& search, bool best_is_plan,
                                       std::size_t most);

// Returns the product's bounds (static_bounds()).
StaticBounds bounds_of(const StaticCase& c);

// Returns the parts and layouts of a cut of this pattern.
StaticAssignment assignment_of(const StaticCase& c, const BlockPattern& pattern,
                               const CountedCut& cut);

// Returns a plan with this assignment for all passes, without its cost.
StaticPlan plan_of(const StaticCase& c, StaticAssignment assignment);

}  // namespace tessera::planner::internal
