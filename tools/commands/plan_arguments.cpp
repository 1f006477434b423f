#include "tessera/tools/commands/plan_arguments.hpp"

#include <CLI/CLI.hpp>
#include <map>

#include "tessera/base/int_math.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/pattern.hpp"
#include "tessera/sparse/restrict.hpp"
#include "tessera/tools/internal/choices.hpp"
#include "tessera/tools/options/host_options.hpp"
#include "tessera/tools/options/inputs.hpp"
#include "tessera/tools/options/layer_options.hpp"
#include "tessera/tools/options/models.hpp"
#include "tessera/tools/options/numbers.hpp"
#include "tessera/tools/options/paths.hpp"
#include "tessera/tools/options/pod_options.hpp"
#include "tessera/tools/options/static_option.hpp"

namespace tessera::tools {
namespace {

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

void add_output_options(CLI::App& app, PlanArguments& a) {
  static const std::map<std::string, CostModel> models{{"default", CostModel::Default},
                                                       {"popsparse", CostModel::PopSparse}};
  auto* model =
      app.add_option("--cost-model", a.cost_model,
                     "cycle model: default (all costs of every step) or popsparse (the formulas of "
                     "PopLibs 3.4, including their errors)");
  take_one_of(model, models)->type_name("MODEL")->default_str("default");
  auto* json = app.add_flag("--json", a.json,
                            "print JSON; for a modelled machine it can be read again with --plan");
  auto* csv =
      app.add_flag("--csv", a.csv, "print the cost of each term, form or step of a pod as CSV");
  csv->excludes(json);
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
                    ->excludes(csv)
                    ->excludes(explain)
                    ->excludes("--on-no-fit")
                    ->excludes("--plan");
  for (const char* option : kLayerOptions) table->excludes(option);
}

}  // namespace

void check_plan_options(const CLI::App& app, PlanArguments& a) {
  take_host_defaults(app, a);
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

void add_plan_options(CLI::App& app, PlanArguments& a) {
  add_weights_options(app, a);
  add_layer_options(app, a);
  allow_auto_block(app, a);
  add_static_option(app, a.is_static);
  add_shape_options(app, a);
  add_machine_options(app, a);
  add_pod_options(app, a.pod);
  add_planner_options(app, a);
  add_output_options(app, a);
}

Problem& ask_layer(PlanArguments a, study::PlanAnswer& asked) {
  asked.pattern = load_pattern(a).value_or(sparse::Csr<double>());
  Problem& p = asked.layer.problem = problem_of(a);
  p.block = a.block_to_plan();
  if (a.matrix.empty()) return p;
  asked.stats = sparse::pattern_stats(in_whole_blocks(asked.pattern, p.block));
  p.density = double(asked.stats->blocks()) / study::places_of(p, p.block);
  return p;
}

sparse::Csr<double> pattern_to_plan(const PlanArguments& a, BlockShape block) {
  if (!a.matrix.empty()) return io::read_weights(a.matrix).matrix;
  constexpr std::uint64_t kSeed = 1;
  const auto drawn =
      sparse::draw_pattern(round_up(a.output_size, block.rows), round_up(a.input_size, block.cols),
                           block, a.density, kSeed, {});
  return sparse::cropped(sparse::with_block(sparse::cast<double>(drawn), BlockShape{1, 1}),
                         a.output_size, a.input_size);
}

}  // namespace tessera::tools
