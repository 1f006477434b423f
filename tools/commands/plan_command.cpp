#include "tessera/tools/commands/plan_command.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <memory>

#include "tessera/base/error.hpp"
#include "tessera/base/printable.hpp"
#include "tessera/base/wrapped.hpp"
#include "tessera/partitioner/forecast.hpp"
#include "tessera/planner/explain.hpp"
#include "tessera/pod/explain_pod.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/pattern.hpp"
#include "tessera/sparse/restrict.hpp"
#include "tessera/study/plan_notes.hpp"
#include "tessera/study/verdict.hpp"
#include "tessera/tools/commands/plan_table.hpp"
#include "tessera/tools/commands/static_plan_text.hpp"
#include "tessera/tools/internal/choices.hpp"
#include "tessera/tools/options/command_line.hpp"
#include "tessera/tools/options/dense_verdict.hpp"
#include "tessera/tools/options/exit_code.hpp"
#include "tessera/tools/options/host_options.hpp"
#include "tessera/tools/options/inputs.hpp"
#include "tessera/tools/options/layer_options.hpp"
#include "tessera/tools/options/models.hpp"
#include "tessera/tools/options/numbers.hpp"
#include "tessera/tools/options/paths.hpp"
#include "tessera/tools/options/pod_options.hpp"
#include "tessera/tools/options/progress.hpp"
#include "tessera/tools/options/static_option.hpp"

namespace tessera::tools {
namespace {

enum class CostModel { Default, PopSparse };

struct PlanArguments : LayerArguments {
  std::int64_t block_rows = 0, block_cols = 0;  // 0: --block-size
  CostModel cost_model = CostModel::Default;
  std::string table;   // path of a table to plan; "-": standard input
  std::string output;  // path; empty: standard output
  bool json = false, explain = false, is_static = false;
  bool layer_given = false, machine_given = false;
  PodArguments pod;  // several devices; not used: one

  BlockShape block_to_plan() const {
    return {block_rows != 0 ? block_rows : block.rows, block_cols != 0 ? block_cols : block.cols};
  }
};

// The options that describe the layer. Tables and plan files describe it themselves.
const char* const kLayerOptions[] = {
    "--matrix",     "--input-size",      "--output-size",   "--density",     "--batch-size",
    "--block-size", "--sparsity-factor", "--sparsity",      "--block-rows",  "--block-cols",
    "--groups",     "--data-type",       "--partials-type", "--single-phase"};

void add_shape_options(CLI::App& app, PlanArguments& a) {
  for (auto* side : {app.add_option("--block-rows", a.block_rows,
                                    "number of rows (outputs) of a non-zero block"),
                     app.add_option("--block-cols", a.block_cols,
                                    "number of columns (inputs) of a non-zero block")})
    require_whole(side, 1, 4096)->excludes("--block-size");
  add_groups_option(app, a);
}

void add_plan_options(CLI::App& app, PlanArguments& a) {
  static const std::map<std::string, CostModel> models{{"default", CostModel::Default},
                                                       {"popsparse", CostModel::PopSparse}};
  auto* model =
      app.add_option("--cost-model", a.cost_model,
                     "cycle model: default (all costs of every step) or popsparse (the formulas of "
                     "PopLibs 3.4, including their errors)");
  take_one_of(model, models)->type_name("MODEL")->default_str("default");
  auto* json = app.add_flag("--json", a.json,
                            "print JSON; for a modelled machine it can be read again with --plan");
  auto* explain = app.add_flag("--explain", a.explain,
                               "explain the plan: what each term depends on, which plans came "
                               "next, why the other methods lost and which limits bind");
  require_writable_file(
      *app.add_option("--output", a.output, "file to write instead of standard output")
           ->type_name("FILE"));
  auto* table = app.add_option("--table", a.table,
                               "tab-separated table to plan row by row; it is printed with the "
                               "planned figures added; - reads standard input")
                    ->type_name("FILE.tsv")
                    ->excludes(json)
                    ->excludes(explain)
                    ->excludes("--on-no-fit")
                    ->excludes("--plan");
  for (const char* option : kLayerOptions) table->excludes(option);
}

// Checks values that depend on several options.
void check_together(const CLI::App& app, PlanArguments& a) {
  refuse_tile_options(app, a,
                      {"--tiles-per-ipu", "--plan-constraints", "--plan", "--plan-cache",
                       "--on-no-fit", "--cost-model", "--explain", "--table"});
  for (const char* option : kLayerOptions) a.layer_given |= app.count(option) > 0;
  a.machine_given = app.count("--machine") + app.count("--tiles-per-ipu") > 0;
  refuse_dynamic_options(
      app, a, a.is_static,
      {{"--groups", "plans several groups, each of which has a pattern of its own"},
       {"--table", "has densities, and a static plan needs a pattern"}});
  check_pod_options(app, a, a.pod, {"--static", "--table", "--cost-model", "--on-no-fit"});
  if (!a.plan_file.empty() && a.chooses_block)
    throw CLI::ValidationError("--block-size", "is auto, but the plan of --plan has its block");
  if (!a.plan_file.empty() && app.count("--cost-model") > 0)
    throw CLI::ValidationError("--plan", "the plan in the file is complete; omit --cost-model");
  if (a.table.empty() && (a.plan_file.empty() || a.layer_given)) require_weights(app, a);
}

planner::Options base_options(const PlanArguments& a) {
  planner::Options base;
  base.poplibs_parity = a.cost_model == CostModel::PopSparse;
  return base;
}

planner::Options options_of(const PlanArguments& a) { return make_options(a, base_options(a)); }

// The requested layer, from the given sizes or from a file with its pattern.
struct Asked {
  Problem problem;
  std::optional<PatternStats> stats;
  sparse::Csr<double> pattern;  // as elements; empty without a file
};

Asked asked_layer(const PlanArguments& a) {
  Asked asked;
  Problem& p = asked.problem;
  p = problem_of(a);
  p.block = a.block_to_plan();
  if (a.matrix.empty()) return asked;
  sparse::Csr<double> pattern = load_weights(a.matrix).matrix;
  p.size.x = pattern.rows;
  p.size.y = pattern.cols;
  // All values become 1, so that explicit zeros stay in the pattern for every block shape.
  std::fill(pattern.values.begin(), pattern.values.end(), 1.0);
  const sparse::Csr<double> blocks = in_whole_blocks(pattern, p.block);
  p.density = double(blocks.blocks()) / (double(blocks.block_rows()) * double(blocks.block_cols()));
  asked.stats = sparse::pattern_stats(blocks);
  asked.pattern = std::move(pattern);
  return asked;
}

// A plan with the facts that it was made from.
struct Answer {
  planner::PlannedLayer layer;
  std::optional<PatternStats> stats;
  sparse::Csr<double> pattern;  // that the statistics are of, as elements
  std::string relaxation;       // description of the relaxed request; empty: not relaxed
  std::string block_choice;     // the block that was chosen and its competitors; empty: none
};

Answer make_plan(const PlanArguments& given) {
  PlanArguments a = given;
  static_cast<LayerArguments&>(a) = with_layer_keys(given);
  const std::string choice = choose_block(a, base_options(a));
  Asked asked = asked_layer(a);
  const device::Machine machine = make_machine(a);
  const planner::BestEffort planned =
      PlanSource(a.plan_cache)
          .plan_or(a.on_no_fit, asked.problem, machine, options_of(a),
                   asked.stats ? &*asked.stats : nullptr);
  if (planned.result.status == planner::PlanStatus::LimitReached)
    print_message(
        fmt::format("tessera: the search stopped at searchLimit {}; a cheaper plan may exist\n",
                    planned.options.search_limit));
  return {{planned.problem, machine, planned.options, planned.result.plan},
          std::move(asked.stats),
          std::move(asked.pattern),
          planned.relaxation ? planned.result.reason : std::string(),
          choice};
}

Answer read_plan(const PlanArguments& a) {
  planner::PlannedLayer layer = load_plan(a.plan_file);
  Asked asked{layer.problem, {}, {}};
  if (a.layer_given) asked = asked_layer(a);
  planner::check_plan_is_for(layer, asked.problem,
                             a.machine_given ? make_machine(a) : layer.machine, a.plan_file);
  return {std::move(layer), std::move(asked.stats), std::move(asked.pattern), {}, {}};
}

planner::Explanation explanation_of(const Answer& answer) {
  const planner::PlannedLayer& layer = answer.layer;
  return planner::explain(layer.problem, layer.machine, layer.options,
                          answer.stats ? &*answer.stats : nullptr, layer.plan);
}

// Returns the probability that an unknown pattern spills, and the capacity that makes spills rare.
// It is empty for a known pattern, which the planner has counted, and for dense buckets, which hold
// every block.
std::string spill_text(const Answer& answer) {
  const planner::PlannedLayer& layer = answer.layer;
  if (answer.stats || layer.plan.use_dense) return {};
  constexpr double kRare = 0.001;
  const partitioner::TileGrid grid = runtime::tile_grid(layer.problem, layer.plan, layer.machine);
  const double density = layer.problem.density;
  const double probability = partitioner::spill_probability(grid, density);
  std::string text = fmt::format(
      "spilling   a uniform random pattern of this density spills with probability {:.2g}",
      probability);
  if (probability > kRare)
    text += fmt::format("; with {:.2f} times the capacity of every bucket, {:g}",
                        partitioner::capacity_factor_for(grid, density, kRare), kRare);
  return text + "\n";
}

std::optional<study::PlanVerdict> verdict_of(const Answer& answer) {
  return study::plan_verdict(answer.layer, answer.stats ? &answer.pattern : nullptr);
}

// Returns the verdict as text, after the dense plan if that is asked for.
std::string verdict_text(const Answer& answer, bool explain) {
  const std::optional<study::PlanVerdict> verdict = verdict_of(answer);
  if (!verdict) return {};
  const auto& dense = verdict->dense.plan;
  return (explain && dense && !verdict->dense.buckets ? to_string(*dense) : std::string()) +
         verdict_line(verdict->comparison);
}

std::string to_json(const Answer& answer, bool explain) {
  const std::optional<study::PlanVerdict> verdict = verdict_of(answer);
  return study::with_notes(
      planner::plan_to_json(answer.layer),
      {.relaxation = answer.relaxation,
       .explanation = explain ? to_json(explanation_of(answer)) : std::string(),
       .block_choice = answer.block_choice,
       .verdict = verdict ? report::to_json(verdict->comparison) : std::string()});
}

std::string to_text(const Answer& answer, bool explain) {
  const planner::PlannedLayer& layer = answer.layer;
  std::string text;
  for (const std::string& note :
       {answer.block_choice, answer.relaxation, dense_note(layer.plan, layer.options)})
    if (!note.empty()) text += fmt::format("note       {}\n", note);
  text += fmt::format("layer      {}\nmachine    {}: {} tiles of {} bytes\n{}",
                      to_string(layer.problem), printable(layer.machine.name), layer.machine.tiles,
                      layer.machine.tile_memory.value, to_string(layer.plan));
  if (explain) text += "\n" + to_text(explanation_of(answer)) + spill_text(answer);
  text += verdict_text(answer, explain);
  return wrapped(text, /*indented=*/6, /*flush=*/11);
}

std::string host_plan_text(const PlanArguments& given) {
  PlanArguments a = given;
  static_cast<LayerArguments&>(a) = with_layer_keys(given);
  const std::string choice = choose_block(a, {});
  const Asked asked = asked_layer(a);
  check_problem(asked.problem);
  const host::FoundRates found = rates_of_this_computer();
  study::ForecastModel model(asked.problem, found);
  const study::Form own{asked.problem.block, asked.problem.density,
                        asked.stats ? &asked.pattern : nullptr};
  const report::HostPlan plan = study::plan_on_host(asked.problem, own, found);
  const report::DenseComparison verdict = study::compare(model, study::best_form(model, own));
  if (a.json)
    return study::with_notes(to_json(plan),
                             {.block_choice = choice, .verdict = report::to_json(verdict)});
  return (choice.empty() ? choice : fmt::format("note       {}\n", choice)) + to_text(plan) +
         wrapped(verdict_line(verdict), /*indented=*/11, /*flush=*/11);
}

// Returns the weights as elements: those of a file, or blocks drawn from the first seed, as
// sparse_fc_layer draws them.
sparse::Csr<double> pattern_to_plan(const LayerArguments& a) {
  if (!a.matrix.empty()) return load_weights(a.matrix).matrix;
  constexpr std::uint64_t kSeed = 1;
  const auto drawn =
      sparse::draw_pattern(round_up(a.output_size, a.block.rows),
                           round_up(a.input_size, a.block.cols), a.block, a.density, kSeed, {});
  return sparse::cropped(sparse::with_block(sparse::cast<double>(drawn), BlockShape{1, 1}),
                         a.output_size, a.input_size);
}

std::string static_plan_text(const PlanArguments& given) {
  LayerArguments a = with_layer_keys(given);
  a.block = given.block_to_plan();
  StaticAnswer answer =
      plan_static_layer(a, base_options(given), pattern_to_plan(a), given.explain);
  if (a.matrix.empty())
    answer.notes.insert(answer.notes.begin(), "the pattern is drawn at random, seed 1");
  if (given.json) return to_json(answer);
  return wrapped(to_text(answer), /*indented=*/6, /*flush=*/11);
}

// Reads a pod plan, or makes the one of the command line.
pod::PodPlan pod_plan(const PlanArguments& given, planner::PlanCache& cache) {
  if (!given.plan_file.empty()) {
    pod::PodPlan plan =
        pod::pod_plan_from_json(study::without_notes(load_text(given.plan_file)), given.plan_file);
    require_plan_is_for(plan, make_pod(given, given.pod),
                        given.layer_given ? asked_layer(given).problem : plan.problem,
                        given.plan_file);
    return plan;
  }
  PlanArguments a = given;
  static_cast<LayerArguments&>(a) = with_layer_keys(given);
  return pod::plan_pod_or_throw(asked_layer(a).problem, make_pod(a, a.pod), options_of(a), {},
                                &cache);
}

std::string pod_plan_text(const PlanArguments& a) {
  planner::PlanCache cache(a.plan_cache);
  const pod::PodPlan plan = pod_plan(a, cache);
  std::optional<pod::PodExplanation> explanation;
  if (a.explain) explanation = pod::explain_pod(plan, &cache);
  if (a.json)
    return study::with_notes(pod::pod_plan_to_json(plan),
                             {.explanation = explanation ? to_json(*explanation) : std::string()});
  std::string text = to_string(plan);
  if (explanation) text += "\n" + to_text(*explanation);
  return wrapped(text, /*indented=*/6, /*flush=*/11);
}

std::string plan_text(const PlanArguments& a) {
  if (is_host(a)) return host_plan_text(a);
  Progress progress(false);
  progress.set("planning");
  if (a.is_static) return static_plan_text(a);
  if (a.pod.is_used()) return pod_plan_text(a);
  if (!a.table.empty()) {
    const std::string name = a.table == "-" ? "standard input" : a.table;
    PlanSource source(a.plan_cache);
    return plan_table(load_text(a.table), name, {make_machine(a), options_of(a), source});
  }
  const Answer answer = a.plan_file.empty() ? make_plan(a) : read_plan(a);
  return a.json ? to_json(answer, a.explain) : to_text(answer, a.explain);
}

}  // namespace

void add_plan_command(CLI::App& app, std::function<int()>& run) {
  CLI::App* command = app.add_subcommand(
      "plan", "Plans one layer, or every layer of a table, and prints the cost.");
  command->footer(std::string(kExitCodes) +
                  "\nExamples: tessera plan --input-size 1024 --output-size 1024 --density 0.1\n"
                  "          tessera plan --table popsparse_plans.tsv --cost-model popsparse");
  const auto arguments = std::make_shared<PlanArguments>();
  add_weights_options(*command, *arguments);
  add_layer_options(*command, *arguments);
  allow_auto_block(*command, *arguments);
  add_static_option(*command, arguments->is_static);
  add_shape_options(*command, *arguments);
  add_machine_options(*command, *arguments);
  add_pod_options(*command, arguments->pod);
  add_planner_options(*command, *arguments);
  add_plan_options(*command, *arguments);
  command->callback([command, arguments, &run] {
    check_together(*command, *arguments);
    run = [arguments] {
      write_results(arguments->output, plan_text(*arguments));
      return int(kOk);
    };
  });
}

}  // namespace tessera::tools
