#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/device/machine.hpp"
#include "tessera/tests/planner/recorded_plans.hpp"

namespace tessera::bench {

// The planners that are timed: the search in parity mode, the search that prices everything, the
// verdict on its plan, which plans up to 30 more layers, and plain enumeration of all partitions in
// either mode, which a search must beat.
enum class Planning { Parity, Default, Verdict, EnumerateParity, EnumerateDefault };
std::string to_string(Planning planning);

// Times the planning of a list of layers on a GC200.
class PlanTimes {
 public:
  // Takes the layers, at least one.
  PlanTimes(Planning planning, const std::vector<planner::RecordedPlan>& rows);

  // Plans every layer once and keeps the CPU time of this process.
  void measure();
  bool measured() const { return !milliseconds_.front().empty(); }

  // The following functions need at least one call of measure(). Returns the milliseconds that
  // `share` of the layers, in (0, 1], do not exceed. Each layer counts with the median of its
  // times.
  double percentile(double share) const;
  double median() const { return percentile(0.5); }
  double most() const { return percentile(1); }
  // The number of partitions whose cost was computed, the same on every computer: median and
  // largest over the layers. Those of a verdict are not counted, and 0.
  std::int64_t median_evaluations() const;
  std::int64_t most_evaluations() const;
  const std::string& name() const { return name_; }

 private:
  double milliseconds_of_plan(std::size_t i);
  double milliseconds_of_verdict(const Problem& problem) const;

  device::Machine machine_ = device::machine_preset("gc200");
  std::string name_;
  Planning planning_;
  std::vector<Problem> problems_;
  std::vector<std::vector<double>> milliseconds_;  // [problem][measure() so far]
  std::vector<std::int64_t> evaluations_;          // [problem]
};

// Formats the figures of each planner beside those of PopLibs' planner and of enumeration, which
// were measured elsewhere.
std::string to_text(const std::vector<PlanTimes>& all);

}  // namespace tessera::bench
