#pragma once

#include <string>
#include <vector>

#include "tessera/base/units.hpp"
#include "tessera/pod/pod_grid.hpp"
#include "tessera/pod/pod_ledger.hpp"
#include "tessera/pod/pod_plan.hpp"
#include "tessera/study/tables.hpp"
#include "tessera/tools/run/pass_target.hpp"

namespace tessera::tools {

// A pass on a pod, which may have ended before its last step.
struct PodPassRun {
  pod::PodLedger ledger;
  PassOutcome outcome;
};

// The outcome of a run on a pod.
struct PodRun {
  pod::PodPlan plan;
  std::string source;              // of the weights
  std::vector<Bytes> memory = {};  // [devices in use] of the fullest tile
  std::vector<pod::DevicePlace> places = {};
  std::vector<PodPassRun> passes = {};
  Files files = {};
  bool is_partial = false;

  // Returns true if no checked pass is wrong.
  bool ok() const;
};

// Returns the tables of a run: its passes, devices, and traffic by level.
study::Report study_of(const PodRun& run, const char* program);

// Returns the text of a run, with the plan of each shape of a device if that is wanted.
std::string text_of(const PodRun& run, const study::Report& report, bool with_plans);

}  // namespace tessera::tools
