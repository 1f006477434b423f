#include "tessera/tools/options/pod_arguments.hpp"

#include <fmt/format.h>

#include "tessera/base/error.hpp"
#include "tessera/pod/plan_pod.hpp"
#include "tessera/report/plan_notes.hpp"
#include "tessera/tools/options/inputs.hpp"

namespace tessera::tools {

device::Pod make_pod(const LayerArguments& arguments, const PodArguments& pod) {
  if (!pod.pod.empty()) return device::load_pod(pod.pod);
  return device::pod_of(make_machine(arguments), pod.devices);
}

pod::PodPlan pod_plan_of(const LayerArguments& arguments, const PodArguments& of,
                         const std::optional<Problem>& problem, const planner::Options& options,
                         planner::PlanCache& cache) {
  const device::Pod pod = make_pod(arguments, of);
  const std::string& file = arguments.plan_file;
  if (file.empty()) return pod::plan_pod_or_throw(*problem, pod, options, {}, &cache);
  pod::PodPlan plan = pod::pod_plan_from_json(report::without_notes(load_text(file)), file);
  Problem planned = plan.problem;
  if (problem) planned.density = problem->density;
  if ((!problem || planned == *problem) && plan.pod == pod) return plan;
  throw Error(
      ErrorCode::InvalidArgument,
      fmt::format("{}: the plan is for {} on pod {} of {} devices; the command line asks for "
                  "{} on pod {} of {}",
                  file, to_string(plan.problem), plan.pod.name, plan.pod.devices(),
                  to_string(problem.value_or(plan.problem)), pod.name, pod.devices()));
}

}  // namespace tessera::tools
