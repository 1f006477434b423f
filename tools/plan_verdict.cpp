#include "tessera/tools/plan_verdict.hpp"

#include "tessera/tools/block_study.hpp"
#include "tessera/tools/dense_verdict.hpp"

namespace tessera::tools {

std::optional<PlanVerdict> plan_verdict(const planner::PlannedLayer& layer,
                                        const sparse::Csr<double>* ones) {
  if (layer.options.poplibs_parity) return std::nullopt;
  PlanVerdict verdict{dense_baseline(layer.problem, layer.machine, layer.options), {}};
  report::DenseComparison& c = verdict.comparison;
  c = report::compare_cycles(report::representation_name(layer.plan),
                             report::pass_cycles(layer.plan.cost), verdict.dense);
  c.density = layer.problem.density;
  BlockStudy study(layer.problem, layer.machine, layer.options);
  c.outlook = outlook_of(c, study, layer.problem.block, verdict.dense, ones);
  return verdict;
}

}  // namespace tessera::tools
