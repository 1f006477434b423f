#include "tessera/tools/sparse_fc_layer/run.hpp"

#include <fmt/format.h>

#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/runtime/fit.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/tools/inputs.hpp"
#include "tessera/tools/sparse_fc_layer/passes.hpp"

namespace tessera::tools {
namespace {

// As PopSparse's tool: the layer has the machine alone.
planner::Options options_of(const Arguments& a) {
  planner::Options base;
  base.available_memory_proportion = 1.0;
  return make_options(a, base);
}

[[noreturn]] void throw_misfit(const partitioner::Misfit& misfit,
                               const runtime::LayerReport& report, const planner::Options& options,
                               const sparse::Csr<float>& weights) {
  const std::optional<double> enough =
      runtime::oversize_that_fits(report.problem, report.machine, options, weights);
  const std::string remedy =
      enough ? fmt::format(
                   "--matmul-options '{{\"metaInfoBucketOversizeProportion\": {}}}' "
                   "would do; it is {} now",
                   *enough, options.meta_info_bucket_oversize_proportion)
             : std::string("no metaInfoBucketOversizeProportion up to 1000 would do");
  throw Error(ErrorCode::NoSolution, fmt::format("{}; {}", misfit.message, remedy));
}

// The plan of a file, with the options it was made with, or one made for this pattern.
planner::BestEffort plan_for(const Arguments& a, const planner::Problem& problem,
                             const device::Machine& machine, const Weights& weights) {
  if (a.plan_file.empty()) {
    const PatternStats stats = sparse::pattern_stats(weights.matrix);
    return PlanSource(a.plan_cache).plan_or(a.on_no_fit, problem, machine, options_of(a), &stats);
  }
  planner::PlannedLayer planned = load_plan(a.plan_file);
  // A plan serves every pattern that fits its buckets, whatever its density.
  planned.problem.density = problem.density;
  planner::check_plan_is_for(planned, problem, machine, a.plan_file);
  planner::BestEffort as_asked{{}, {}, problem, planned.options};
  as_asked.result.plan = planned.plan;
  return as_asked;
}

std::vector<std::string> notes_of(const planner::BestEffort& planned) {
  std::vector<std::string> notes;
  if (planned.relaxation) notes.push_back(planned.result.reason);
  if (planned.relaxation && planned.relaxation->runs > 1)
    notes.push_back(fmt::format("cycles below are those of one run; results of all {} are checked",
                                planned.relaxation->runs));
  const planner::Plan& plan = planned.result.plan;
  if (plan.use_dense)
    notes.push_back(fmt::format("R dense in {}x{} blocks", plan.block.rows, plan.block.cols));
  return notes;
}

}  // namespace

ExitCode exit_code_of(const runtime::LayerReport& report) {
  return report.ok() ? kOk : kCheckFailed;
}

LayerRun run_layer(const Arguments& a) {
  const device::Machine machine = make_machine(a);
  const Weights weights = make_weights(a);
  const planner::BestEffort planned = plan_for(a, make_problem(a, weights), machine, weights);
  LayerRun run{notes_of(planned),
               {.source = weights.source,
                .problem = planned.problem,
                .plan = planned.result.plan,
                .machine = machine,
                .grid = runtime::tile_grid(planned.problem, planned.result.plan, machine)}};
  runtime::LayerReport& report = run.report;

  const auto executor = make_executor(a.threads);
  const auto mode =
      a.isolate || a.fault ? device::ExchangeMode::Isolate : device::ExchangeMode::Share;
  runtime::FullyConnected layer(report.problem, report.plan, machine, mode, *executor);
  const auto misfit = layer.set_weights(
      weights.matrix, {.force_spills = planned.options.partitioner_force_bucket_spills});
  if (misfit) throw_misfit(*misfit, report, planned.options, weights.matrix);
  report.spill = layer.buckets().stats;
  report.travel = layer.buckets().travel;
  report.high_water = layer.high_water();
  for (std::string& note : run_passes(layer, weights, a, report))
    run.notes.push_back(std::move(note));
  return run;
}

std::string to_text(const LayerRun& run) {
  std::string text;
  for (const std::string& note : run.notes) text += fmt::format("note      {}\n", note);
  return text + runtime::to_text(run.report);
}

}  // namespace tessera::tools
