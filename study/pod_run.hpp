#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tessera/base/units.hpp"
#include "tessera/pod/pod_grid.hpp"
#include "tessera/pod/pod_ledger.hpp"
#include "tessera/pod/pod_plan.hpp"
#include "tessera/study/tables.hpp"
#include "tessera/verify/verify.hpp"

namespace tessera::study {

// A pass on a pod, which may have ended before its last step.
struct PodRunPass {
  pod::PodLedger ledger;
  std::optional<verify::Verdict> verdict;  // no value: the results were not checked
  std::string fault;                       // the outcome of a fault; empty: there was none
  std::vector<std::string> notes;          // on faults and self-checks
};

// The outcome of a run of a layer on a pod.
struct PodRun {
  pod::PodPlan plan;
  std::string source;              // of the weights
  std::vector<Bytes> memory = {};  // [devices in use] of the fullest tile
  std::vector<pod::DevicePlace> places = {};
  std::vector<PodRunPass> passes = {};
  bool is_partial = false;

  // Returns true if no checked pass is wrong.
  bool ok() const;
};

// Returns the tables of a run: its passes, devices, and traffic by level. `program` names the tool.
Report report_of(const PodRun& run, const std::string& program);

// Returns the passes of a run, one after the other, as a trace in Chrome's format: a track for each
// device, and one for the links.
std::string to_trace(const PodRun& run);

// Returns the text of a run, with the plan of each shape of a device if that is wanted.
std::string to_text(const PodRun& run, bool with_plans);

}  // namespace tessera::study
