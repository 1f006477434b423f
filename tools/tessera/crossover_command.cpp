#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "tessera/tools/block_study.hpp"
#include "tessera/tools/exit_code.hpp"
#include "tessera/tools/inputs.hpp"
#include "tessera/tools/internal/host_options.hpp"
#include "tessera/tools/internal/interrupt.hpp"
#include "tessera/tools/internal/layer_options.hpp"
#include "tessera/tools/internal/manual.hpp"
#include "tessera/tools/internal/numbers.hpp"
#include "tessera/tools/internal/progress.hpp"
#include "tessera/tools/internal/study.hpp"
#include "tessera/tools/tessera/commands.hpp"
#include "tessera/tools/tessera/host_commands.hpp"

namespace tessera::tools {
namespace {

// The points of the curve, close enough for a line on a logarithmic axis.
constexpr double kDensities[] = {0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1};

struct CrossoverArguments : LayerArguments {
  internal::StudyOutput output;
  bool block_given = false;
};

using Json = nlohmann::ordered_json;

// The crossover of one block shape, and its curve if a page or JSON shows it.
struct Crossing {
  std::string block;
  double density = 0;
  std::optional<std::int64_t> cycles;
  std::string note;                  // the reason why even the lowest density has no plan
  std::optional<BlockPlan> pattern;  // of the file
  Json curve = Json::array();
};

// The crossovers of a layer; `dense` is empty if the dense layer does not fit the machine.
struct Study {
  CrossoverRequest request;
  std::optional<std::int64_t> dense;
  std::string no_dense;  // the reason why the dense layer does not fit
  std::vector<Crossing> crossings;

  bool has_plan() const {
    return std::ranges::any_of(crossings, [](const Crossing& c) { return c.cycles.has_value(); });
  }
};

Json json_or_null(const std::optional<std::int64_t>& cycles) {
  return cycles ? Json(*cycles) : Json(nullptr);
}

Crossing crossing_of(BlockStudy& layer, BlockShape block, const Study& study, bool with_curve) {
  const auto cycles_at = [&](double density) -> std::optional<std::int64_t> {
    const auto cycles = layer.cheapest_cycles(block, density);
    if (!cycles) return std::nullopt;
    return cycles->value;
  };
  // Without a dense plan, sparse pays wherever it fits.
  constexpr std::int64_t kUnbounded = std::numeric_limits<std::int64_t>::max();
  const Cycles dense(study.dense.value_or(kUnbounded));
  Crossing crossing{.block = fmt::format("{}x{}", block.rows, block.cols),
                    .density = layer.pays_up_to(block, dense)};
  if (crossing.density > 0)
    crossing.cycles = cycles_at(crossing.density);
  else if (BlockPlan lowest = layer.plan_random(block, kDensities[0]); !lowest.plan)
    crossing.note = std::move(lowest.note);
  if (study.request.pattern) crossing.pattern = layer.plan_pattern(*study.request.pattern, block);
  if (!with_curve) return crossing;
  for (const double density : kDensities)
    crossing.curve.push_back({{"density", density}, {"cycles", json_or_null(cycles_at(density))}});
  return crossing;
}

// Returns the verdict on the pattern of the file in its cheapest blocks.
std::string pattern_verdict(const Study& study) {
  std::vector<BlockPlan> plans;
  for (const Crossing& c : study.crossings)
    if (c.pattern) plans.push_back(*c.pattern);
  const BlockPlan* best = cheapest_of(plans);
  if (best == nullptr) return "this pattern has no plan; ";
  const std::int64_t sparse = best->cycles.value, dense = study.dense.value_or(sparse);
  const bool wins = !study.dense || sparse < dense;
  std::string text =
      fmt::format("{}this pattern in {} blocks {} cycles", wins ? "" : "dense wins: ", best->name(),
                  fmt::group_digits(sparse));
  if (study.dense)
    text += fmt::format(", {:.1f}x {} dense",
                        wins ? double(dense) / double(sparse) : double(sparse) / double(dense),
                        wins ? "faster than" : "as many as");
  return text + "; ";
}

// Returns the verdict: the densities from which on dense costs less, or that it always does.
std::string verdict_of(const Study& study) {
  std::string pays;
  for (const Crossing& c : study.crossings)
    if (c.density > 0) pays += fmt::format("{:.3g} ({}), ", c.density, c.block);
  std::string text = "verdict    ";
  if (study.request.pattern) text += pattern_verdict(study);
  if (!study.dense)
    text += pays.empty() ? "nothing fits, " : "dense does not fit; sparse does up to density ";
  else
    text +=
        pays.empty() ? "dense wins at every density from 0.001 on, " : "sparse pays up to density ";
  return text + pays + "modelled\n";
}

std::string line_of(const Crossing& c) {
  std::string text = fmt::format("{:<10}{:>24.3f}{:>24}", c.block, c.density,
                                 c.cycles ? std::to_string(*c.cycles) : "-");
  if (c.pattern)
    text += fmt::format("{:>20.4f}{:>20}", c.pattern->density,
                        c.pattern->plan ? std::to_string(c.pattern->cycles.value) : "no plan");
  text += "\n";
  if (!c.note.empty()) text += fmt::format("  {}\n", c.note);
  if (c.pattern && c.note.empty() && !c.pattern->note.empty())
    text += fmt::format("  this pattern: {}\n", c.pattern->note);
  return text;
}

std::string text_of(const Study& study) {
  std::string text = study.dense ? fmt::format("dense: {} cycles (planned)\n", *study.dense)
                                 : fmt::format("dense: no plan, {}\n", study.no_dense);
  text += fmt::format("{:<10}{:>24}{:>24}", "block", "sparse wins up to", "cycles there");
  if (study.request.pattern) text += fmt::format("{:>20}{:>20}", "density here", "cycles here");
  text += "\n";
  for (const Crossing& c : study.crossings) text += line_of(c);
  text += "densities in steps of 0.001; cycles are modelled\n" + verdict_of(study);
  return internal::wrapped(text, /*indented=*/11, /*flush=*/11);
}

Json block_json(const Crossing& c) {
  Json json = {{"block", c.block},
               {"crossover_density", c.density},
               {"cycles", json_or_null(c.cycles)},
               {"note", c.note},
               {"curve", c.curve}};
  if (c.pattern)
    json["pattern"] = {{"density", c.pattern->density},
                       {"cycles", c.pattern->plan ? Json(c.pattern->cycles.value) : Json()},
                       {"note", c.pattern->note}};
  return json;
}

std::string json_of(const Study& study, const Problem& problem) {
  Json blocks = Json::array();
  for (const Crossing& c : study.crossings) blocks.push_back(block_json(c));
  const bool is_complete = study.crossings.size() == study.request.blocks.size();
  return Json{{"schema_version", 1},
              {"study", "crossover"},
              {"status", is_complete ? "complete" : "partial"},
              {"layer", internal::layer_words(problem)},
              {"machine", study.request.layer.machine},
              {"dense_cycles", json_or_null(study.dense)},
              {"blocks", std::move(blocks)}}
             .dump(2) +
         "\n";
}

// Adds the crossovers of all block shapes; fewer after Ctrl-C.
void cross_all(BlockStudy& layer, Study& study, bool with_curve, internal::Progress& progress) {
  for (const BlockShape block : study.request.blocks) {
    if (internal::is_interrupted()) break;
    progress.set(fmt::format("planning {}x{} blocks", block.rows, block.cols),
                 std::ssize(study.crossings), std::ssize(study.request.blocks));
    study.crossings.push_back(crossing_of(layer, block, study, with_curve));
  }
  progress.hide();
}

CrossoverRequest request_of(const CrossoverArguments& a) {
  CrossoverRequest request{.layer = with_layer_keys(a), .blocks = {}, .pattern = {}};
  if (a.block_given) request.blocks = {a.block};
  for (const std::int64_t side : kBlockSides)
    if (!a.block_given) request.blocks.push_back({side, side});
  request.pattern = load_pattern(request.layer);
  return request;
}

int crossover(const CrossoverArguments& a) {
  internal::catch_interrupts();
  Study study{.request = request_of(a), .dense = {}, .no_dense = {}, .crossings = {}};
  if (is_host(a)) return print_results(host_crossover(study.request)), int(kOk);
  BlockStudy layer(study.request.layer);
  internal::Progress progress(false);
  progress.set("planning the dense layer");
  const planner::DensePlanResult dense = layer.dense();
  if (dense.plan) study.dense = dense.plan->cost.cycles.value;
  study.no_dense = dense.reason;
  cross_all(layer, study, a.output.wants_data(), progress);
  const int exit =
      internal::write_study(a.output, text_of(study), json_of(study, layer.problem({1, 1}, 1)));
  return exit == kOk && !study.dense && !study.has_plan() ? int(kNothingFits) : exit;
}

// Adds the size of the layer, which a file may give.
void add_size_options(CLI::App& app, LayerArguments& a) {
  auto* matrix =
      app.add_option("--matrix", a.matrix,
                     "file of weights, which gives the size; its pattern is compared, too")
          ->type_name("FILE");
  for (auto* size : {app.add_option("--input-size", a.input_size, "number of inputs"),
                     app.add_option("--output-size", a.output_size, "number of outputs")})
    internal::require_whole(size, 1, internal::kLargestSize)->excludes(matrix);
}

void check_together(const CLI::App& app, CrossoverArguments& a) {
  a.block_given = app.count("--block-size") > 0;
  if (a.matrix.empty() && (a.input_size == 0 || a.output_size == 0))
    throw CLI::ValidationError("size", "give --matrix FILE, or --input-size and --output-size");
  const char* const why = "shows planned cycles, but on this computer times are measured";
  internal::refuse_tile_options(app, a,
                                {"--tiles-per-ipu",
                                 "--plan-constraints",
                                 "--plan-cache",
                                 "--on-no-fit",
                                 {"--json", why},
                                 {"--html", why}});
}

}  // namespace

void add_crossover_command(CLI::App& app, std::function<int()>& run) {
  CLI::App* command = app.add_subcommand(
      "crossover", "Finds the density up to which a sparse layer costs less than a dense one.");
  command->footer(std::string(internal::kExitCodes) +
                  "\nExample: tessera crossover --input-size 1024 --output-size 1024 "
                  "--batch-size 64 --single-phase fwd");
  const auto a = std::make_shared<CrossoverArguments>();
  add_size_options(*command, *a);
  internal::add_layer_options(*command, *a);
  internal::add_machine_options(*command, *a);
  internal::add_planner_options(*command, *a);
  command->remove_option(command->get_option("--plan"));
  internal::add_study_options(*command, a->output);
  command->callback([command, a, &run] {
    check_together(*command, *a);
    run = [a] { return crossover(*a); };
  });
}

}  // namespace tessera::tools
