#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tessera/device/pod.hpp"
#include "tessera/planner/options.hpp"
#include "tessera/planner/plan_cache.hpp"
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

// Returns the plan of the problem on the pod, from the file of the arguments or made with
// `options`. Without a problem, that of the file is taken. Throws Error{InvalidArgument}, which
// names both, if the file has a plan for another pod or problem (the density may differ), and the
// errors of pod::plan_pod_or_throw().
pod::PodPlan pod_plan_of(const LayerArguments& arguments, const PodArguments& pod,
                         const std::optional<Problem>& problem, const planner::Options& options,
                         planner::PlanCache& cache);

}  // namespace tessera::tools
