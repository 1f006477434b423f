#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/base/pass.hpp"
#include "tessera/base/units.hpp"
#include "tessera/pod/pod_plan.hpp"

namespace tessera::pod {

// The work of one device in one step.
struct DeviceFigures {
  std::int64_t device = 0;  // number in the pod
  Cycles cycles;            // from its first step to its last, counted from the real data
  Bytes moved;              // between its tiles

  friend bool operator==(const DeviceFigures&, const DeviceFigures&) = default;
};

// One step of a pass on a pod: a device step, a collective, or a barrier if both are empty.
struct PodStep {
  double seconds = 0;
  std::vector<DeviceFigures> devices;           // of a device step, in ascending order
  std::optional<PlannedCollective> collective;  // with the sizes of the largest real part

  friend bool operator==(const PodStep&, const PodStep&) = default;

  // Returns for example "all-gather of S", "devices" or "barrier".
  std::string name() const;

  // Returns the device that all others wait for, the first among equal ones; nullptr if this is no
  // device step.
  const DeviceFigures* slowest() const;
};

// The cost of one pass on a pod: modelled time, and counted bytes. A plain value.
struct PodLedger {
  Pass pass = Pass::Fwd;
  std::vector<PodStep> steps;
  std::int64_t devices_simulated = 0;  // fewer than in use: the others are taken to be as fast
                                       // as the slowest of these, and results are incomplete

  friend bool operator==(const PodLedger&, const PodLedger&) = default;

  double seconds() const;
  double device_seconds() const;
  double collective_seconds() const;

  // Returns the bytes over the links of each level of the pod, one number for each level.
  std::vector<double> level_bytes() const;
};

// Returns the ledger as text: one line for each step, with the slowest device of device steps and
// the bytes by level of collectives.
std::string to_string(const PodLedger& ledger);

}  // namespace tessera::pod
