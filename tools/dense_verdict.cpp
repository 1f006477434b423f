#include "tessera/tools/dense_verdict.hpp"

#include <fmt/format.h>

namespace tessera::tools {

planner::DensePlanResult dense_baseline(const Problem& problem, const device::Machine& machine,
                                        const planner::Options& options) {
  return planner::plan_dense(problem, machine,
                             {.available_memory_proportion = options.available_memory_proportion});
}

std::string verdict_line(const report::DenseComparison& comparison) {
  return fmt::format("verdict    {}\n", verdict_text(comparison));
}

}  // namespace tessera::tools
