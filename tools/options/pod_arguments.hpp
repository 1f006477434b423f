#pragma once

#include <cstdint>
#include <string>

#include "tessera/device/pod.hpp"
#include "tessera/pod/pod_plan.hpp"
#include "tessera/tools/options/layer_arguments.hpp"

namespace tessera::tools {

// The devices of a layer that is cut over several.
struct PodArguments {
  std::int64_t devices = 0;  // of the machine; 0: not given
  std::string pod;           // a preset or a JSON file; empty: not given

  bool is_used() const { return devices > 0 || !pod.empty(); }
};

// Returns the pod that the arguments name. Throws Error{InvalidArgument} for an unknown name or a
// number of devices that cannot be joined, and Error{BadInput} for a malformed file.
device::Pod make_pod(const LayerArguments& arguments, const PodArguments& pod);

// Checks that the plan of a file is for this pod and problem; the density may differ. Throws
// Error{InvalidArgument}, which names both.
void require_plan_is_for(const pod::PodPlan& plan, const device::Pod& pod, const Problem& problem,
                         const std::string& file);

}  // namespace tessera::tools
