#include "tessera/tools/options/pod_arguments.hpp"

#include <fmt/format.h>

#include "tessera/base/error.hpp"

namespace tessera::tools {

device::Pod make_pod(const LayerArguments& arguments, const PodArguments& pod) {
  if (!pod.pod.empty()) return device::load_pod(pod.pod);
  return device::pod_of(make_machine(arguments), pod.devices);
}

void require_plan_is_for(const pod::PodPlan& plan, const device::Pod& pod, const Problem& problem,
                         const std::string& file) {
  Problem planned = plan.problem;
  planned.density = problem.density;
  if (planned == problem && plan.pod == pod) return;
  throw Error(
      ErrorCode::InvalidArgument,
      fmt::format("{}: the plan is for {} on pod {} of {} devices; the command line asks for "
                  "{} on pod {} of {}",
                  file, to_string(plan.problem), plan.pod.name, plan.pod.devices(),
                  to_string(problem), pod.name, pod.devices()));
}

}  // namespace tessera::tools
