#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/tests/planner/recorded_plans.hpp"

namespace tessera::bench {

// What plans: the search in parity mode, the search pricing everything, and plain enumeration of
// all partitions in either mode, which a search must beat.
enum class Planning { Parity, Default, EnumerateParity, EnumerateDefault };
std::string to_string(Planning planning);

// How long one plan takes, for a list of layers on a GC200.
class PlanTimes {
 public:
  // The layers; not empty.
  PlanTimes(Planning planning, const std::vector<planner::RecordedPlan>& rows);

  // Plans every layer once and keeps the times: CPU time of this process.
  void measure();
  bool measured() const { return !milliseconds_.front().empty(); }

  // The rest needs measure() once at least.
  // Milliseconds that a share of the layers, in (0, 1], stays below or at; each layer counts with
  // the median of its times.
  double percentile(double share) const;
  double median() const { return percentile(0.5); }
  double most() const { return percentile(1); }
  // Partitions whose cost was computed, the same on every computer: median and largest of the
  // layers.
  std::int64_t median_evaluations() const;
  std::int64_t most_evaluations() const;
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  Planning planning_;
  std::vector<Problem> problems_;
  std::vector<std::vector<double>> milliseconds_;  // [problem][measure() so far]
  std::vector<std::int64_t> evaluations_;          // [problem]
};

// The figures of each beside those of PopLibs' planner and of enumeration, measured elsewhere.
std::string to_text(const std::vector<PlanTimes>& all);

}  // namespace tessera::bench
