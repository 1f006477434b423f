#include "tessera/tools/plan_verdict.hpp"

#include "tessera/sparse/convert.hpp"
#include "tessera/tools/block_study.hpp"

namespace tessera::tools {
namespace {

report::SparseAlternative sparse_side(const planner::PlannedLayer& layer,
                                      const sparse::Csr<double>* ones) {
  std::optional<PatternStats> stats;
  if (ones != nullptr) stats = sparse::pattern_stats(in_whole_blocks(*ones, layer.problem.block));
  return report::sparse_alternative(layer.problem, layer.machine, layer.options,
                                    stats ? &*stats : nullptr);
}

}  // namespace

std::optional<PlanVerdict> plan_verdict(const planner::PlannedLayer& layer,
                                        const sparse::Csr<double>* ones) {
  if (layer.options.poplibs_parity) return std::nullopt;
  PlanVerdict verdict{report::dense_baseline(layer.problem, layer.machine, layer.options), {}};
  report::DenseComparison& c = verdict.comparison;
  const std::vector<report::PassCycles> own = report::pass_cycles(layer.plan.cost);
  report::SparseAlternative sparse{layer.plan, ""};
  if (layer.plan.dense) sparse = sparse_side(layer, ones);
  c = layer.plan.dense
          ? report::compare_dense_run(own, layer.plan.dense->partials_type, sparse)
          : report::compare_cycles(report::representation_name(layer.plan), own, verdict.dense);
  c.density = layer.problem.density;
  BlockStudy study(layer.problem, layer.machine, layer.options);
  c.outlook = outlook_of(c, study, layer.problem.block, verdict.dense, ones,
                         sparse.plan ? &*sparse.plan : nullptr);
  return verdict;
}

}  // namespace tessera::tools
