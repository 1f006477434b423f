#include "tessera/tools/run/run.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/base/printable.hpp"
#include "tessera/base/version.hpp"
#include "tessera/io/write.hpp"
#include "tessera/planner/explain.hpp"
#include "tessera/planner/matmul.hpp"
#include "tessera/planner/plan_json.hpp"
#include "tessera/report/dense_verdict.hpp"
#include "tessera/sparse/block_stats.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/study/static_layer.hpp"
#include "tessera/study/verdict.hpp"
#include "tessera/tools/options/inputs.hpp"
#include "tessera/tools/options/interrupt.hpp"
#include "tessera/tools/options/progress.hpp"
#include "tessera/tools/options/static_option.hpp"
#include "tessera/tools/run/bucket_file.hpp"
#include "tessera/tools/run/operands.hpp"
#include "tessera/tools/run/product_layer.hpp"
#include "tessera/tools/run/tile_run.hpp"
#include "tessera/tools/run/trust.hpp"

namespace tessera::tools {

namespace {

planner::Options options_of(const Arguments& a) { return make_options(a, {}); }

// Returns the plan of a file with the options of that file, or else a new plan for this pattern.
planner::BestEffort plan_for(const Arguments& a, const Problem& problem,
                             const device::Machine& machine, const Weights& weights,
                             const BucketFile* file) {
  if (a.plan_file.empty() && file == nullptr) {
    const PatternStats stats = sparse::stats_of_groups(weights.matrices());
    return PlanSource(a.plan_cache).plan_or(a.on_no_fit, problem, machine, options_of(a), &stats);
  }
  planner::PlannedLayer planned = file != nullptr ? file->planned : load_plan(a.plan_file);
  // A plan serves every pattern of any density that fits its buckets.
  planned.problem.density = problem.density;
  planner::check_plan_is_for(planned, problem, machine, file != nullptr ? a.buckets : a.plan_file);
  planner::BestEffort as_asked{{}, {}, problem, planned.options};
  as_asked.result.plan = planned.plan;
  return as_asked;
}

// Returns a plan for this pattern alone. The other plan of a static layer has its cost and the
// figures that all reports name.
planner::BestEffort plan_static_for(const Arguments& a, const Problem& problem,
                                    const device::Machine& machine, const Weights& weights,
                                    planner::StaticPlan& plan) {
  planner::StaticOptions options = static_options(a, {});
  options.z_parts = a.static_parts;
  options.bands = a.static_bands;
  plan =
      *study::plan_static_or_throw(problem, study::block_pattern(*weights.matrix), machine, options)
           .plan;
  planner::BestEffort as_asked{{}, {}, problem, options_of(a)};
  as_asked.result.plan.cost = plan.cost;
  as_asked.result.plan.block = problem.block;
  as_asked.result.plan.operand_placement = Placement::EvenSpread;
  return as_asked;
}

std::vector<std::string> static_notes(const Arguments& a, const LayerRun& run,
                                      const Weights& weights) {
  std::vector<std::string> notes;
  const std::string blocks = study::kernel_block_note(a.block);
  if (!blocks.empty()) notes.push_back(blocks);
  const report::LayerReport& report = run.report;
  if (!run.context.options.poplibs_parity && report.plan.cost.cycles > Cycles())
    notes.push_back(study::dynamic_comparison(report.plan.cost.cycles, report.problem,
                                              report.machine,
                                              sparse::pattern_stats(weights.matrix)));
  return notes;
}

std::vector<std::string> notes_of(const planner::BestEffort& planned) {
  std::vector<std::string> notes;
  if (planned.relaxation) notes.push_back(planned.result.reason);
  if (planned.relaxation && planned.relaxation->runs > 1)
    notes.push_back(
        fmt::format("the cycles below are for one run; the results of all {} runs are checked",
                    planned.relaxation->runs));
  const std::string dense = report::dense_note(planned.result.plan, planned.options);
  if (!dense.empty()) notes.push_back(dense);
  return notes;
}

planner::Explanation explain(const LayerRun& run, const Weights& weights) {
  const PatternStats stats = sparse::stats_of_groups(weights.matrices());
  return planner::explain(run.report.problem, run.report.machine, run.context.options, &stats,
                          run.report.plan);
}

// Adds what the run is compared with. Plans in PopSparse's cost model are not compared, because it
// leaves out costs that the dense plan has; runs are charged in full in both models.
void add_other_side(const Arguments& a, const Weights& weights, LayerRun& run) {
  const planner::Options& options = run.context.options;
  report::LayerReport& report = run.report;
  if (options.poplibs_parity && a.stop < StopAfter::Passes) return;
  report.dense = report::dense_baseline(report.problem, report.machine, options);
  if (!report.plan.dense) return;
  const PatternStats stats = sparse::stats_of_groups(weights.matrices());
  report.sparse = report::sparse_alternative(report.problem, report.machine, options, &stats);
}

// Returns the transposition that a product needs, if this is one.
std::optional<planner::TransposePlan> move_of(const Arguments& a,
                                              const report::LayerReport& report) {
  if (!a.product) return std::nullopt;
  return planner::matmul_plan(product_of(*a.product, report.problem), report.plan, report.machine)
      .move;
}

// Returns why the planner chose this plan, for --explain.
std::string explanation_text(const Arguments& a, const LayerRun& run, const Weights& weights) {
  std::string text = "\n" + planner::to_text(explain(run, weights));
  if (const auto move = move_of(a, run.report))
    text += fmt::format(
        "transpose  the dense operand of each group, {} x {}, in {} x {} parts, before the pass: "
        "arrange {}, exchange {}, transpose {}, barriers and launches {}\n",
        move->rows, move->cols, move->row_parts, move->col_parts, move->arrange.value,
        move->exchange.value, move->transpose.value, move->waiting.value);
  return text;
}

// Adds what is known of other layers to a report that somebody reads. The pattern of a file is
// counted in blocks of its elements, because the weights of the run are in whole blocks.
void add_outlook(const Arguments& a, const Weights& weights, LayerRun& run) {
  report::LayerReport& report = run.report;
  const auto comparison = dense_comparison(report);
  const bool is_read = !a.quiet || a.json || !a.html.empty() || !a.output_dir.empty();
  if (!comparison || !is_read || a.is_static || is_interrupted()) return;
  const auto ones = comparison->sparse_wins() ? std::nullopt : pattern_of_file(weights);
  // The study prices passes, so the dense side is that without the move of a product's operand.
  report::DenseBaseline dense = report.dense;
  if (const auto move = move_of(a, report); move && dense.plan)
    dense.plan->cost.cycles -= move->cycles();
  report.outlook =
      study::outlook_of(report, run.context.options, *comparison, dense, ones ? &*ones : nullptr);
}

std::string plan_json(const LayerRun& run) {
  const report::LayerReport& report = run.report;
  if (report.static_plan) return planner::to_json(*report.static_plan);
  return planner::plan_to_json({report.problem, report.machine, run.context.options, report.plan});
}

std::string plan_text(const report::LayerReport& report) {
  return "\n" + (report.static_plan ? to_string(*report.static_plan) : to_string(report.plan));
}

// Dense and static plans have no grid of buckets; reports take the block of the weights from it.
partitioner::TileGrid grid_of(const Arguments& a, const planner::BestEffort& planned,
                              const device::Machine& machine) {
  if (planned.result.plan.dense || a.is_static) return {.block = planned.problem.block};
  return runtime::tile_grid(planned.problem, planned.result.plan, machine);
}

}  // namespace

bool wants_page(const Arguments& a) {
  return !a.is_static && (!a.html.empty() || (!a.output_dir.empty() && can_make_pages()));
}

LayerRun run_layer(const Arguments& given, const char* program) {
  const auto begin = std::chrono::steady_clock::now();
  Arguments a = given;
  Progress progress(a.quiet);
  progress.set("reading");
  std::optional<BucketFile> file;
  if (!a.buckets.empty()) file = read_bucket_file(a);
  check_fault_pass(a);  // the passes may be those of the file
  const device::Machine machine =
      file && !a.names_machine ? file->planned.machine : make_machine(a);
  if (a.trace_first_tile + a.trace_tiles > machine.tiles)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("--trace-tiles: the last tile is {}, but {} has tiles 0..{}",
                            a.trace_first_tile + a.trace_tiles - 1, printable(machine.name),
                            machine.tiles - 1));
  std::string block_choice;
  Weights weights = file ? file->weights : make_weights_of_run(a, block_choice);
  a.batch_size = batch_of(a, weights);
  progress.set("planning");
  if (a.is_static) use_kernel_blocks(weights);
  const Problem problem = make_problem(a, weights);
  planner::StaticPlan static_plan;
  const planner::BestEffort planned =
      a.is_static
          ? plan_static_for(a, study::with_static_sums(problem), machine, weights, static_plan)
          : plan_for(a, problem, machine, weights, file ? &*file : nullptr);
  LayerRun run{{.tool = program,
                .version = TESSERA_VERSION,
                .seed = a.seed,
                .options = planned.options,
                .configuration = a.configuration,
                .notes = notes_of(planned),
                .weight_scale = std::ldexp(1.0, weights.scale_exponent),
                .with_tiles = a.report_tiles},
               {.source = weights.source,
                .problem = planned.problem,
                .plan = planned.result.plan,
                .machine = machine,
                .grid = grid_of(a, planned, machine)},
               {},
               weights.share_of_empty_rows(),
               {},
               {},
               a.report_cycles,
               a.profile,
               a.report_tiles || wants_page(a)};
  if (!a.mask_out.empty())
    run.outputs.emplace_back(
        a.mask_out, io::write_mask(*(a.is_mask_transposed ? sparse::transpose(weights.matrix)
                                                          : weights.matrix)));
  if (a.is_static) {
    run.report.static_plan = std::move(static_plan);
    run.context.notes = static_notes(a, run, weights);
  }
  if (!block_choice.empty()) run.context.notes.insert(run.context.notes.begin(), block_choice);
  if (a.limit_milliseconds > 0)
    run.deadline = begin + std::chrono::microseconds(std::int64_t(1e3 * a.limit_milliseconds));
  if (a.report_plan) run.extras = plan_text(run.report);
  if (a.explain) run.extras += explanation_text(a, run, weights);
  if (wants_page(a) && a.plan_file.empty() && !file && planned.options == options_of(a))
    run.page.explanation = planner::to_json(explain(run, weights));
  add_other_side(a, weights, run);
  build_and_run(a, weights, run, progress);
  progress.set("comparing with dense");
  add_outlook(a, weights, run);
  if (!a.output_dir.empty()) run.files.emplace_back("plan.json", plan_json(run));
  return run;
}

}  // namespace tessera::tools
