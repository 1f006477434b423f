#include "tessera/tools/internal/layer_options.hpp"

#include <CLI/CLI.hpp>
#include <limits>
#include <map>

#include "tessera/tools/internal/command_line.hpp"

namespace tessera::tools::internal {
namespace {

constexpr std::int64_t kLargestSize = std::numeric_limits<std::int32_t>::max();

const CLI::Range& size_range() {
  static const CLI::Range range(std::int64_t{1}, kLargestSize);
  return range;
}

BlockShape parse_block(const std::string& text) {
  constexpr std::int64_t kLargestSide = 4096;
  const auto sides = parse_pair(text);
  const auto is_side = [](std::int64_t side) { return 1 <= side && side <= kLargestSide; };
  if (!sides || !is_side(sides->first) || !is_side(sides->second))
    throw CLI::ValidationError("--block-size", "is " + text +
                                                   "; it must be a side, or {rows,columns}, of "
                                                   "1 to 4096");
  return {sides->first, sides->second};
}

}  // namespace

const char* const kExitCodes =
    "Exit codes: 0 all right, 1 a check failed, 2 usage, 3 bad input file, 4 nothing fits, "
    "6 internal, 130 interrupted.";

void add_weights_options(CLI::App& app, LayerArguments& a) {
  auto* matrix = app.add_option("--matrix", a.matrix,
                                "weights: FILE.smtx, FILE.mtx or a 0/1 mask FILE.txt; rows are "
                                "outputs, columns inputs")
                     ->type_name("FILE");
  auto* input = app.add_option("--input-size", a.input_size, "inputs of a random pattern");
  auto* output = app.add_option("--output-size", a.output_size, "outputs of a random pattern");
  auto* density =
      app.add_option("--density", a.density, "non-zeros / all of a random pattern, 0 .. 1");
  auto* factor = app.add_option("--sparsity-factor", a.density,
                                "the same as --density: PopSparse's name for the share of "
                                "NON-zeros");
  for (CLI::Option* size : {input, output}) size->check(size_range())->excludes(matrix);
  for (CLI::Option* share : {density, factor}) share->check(CLI::Range(0.0, 1.0))->excludes(matrix);
  density->excludes(factor);
}

void require_weights(const CLI::App& app, const LayerArguments& a) {
  if (!a.matrix.empty()) return;
  const bool has_density =
      a.density > 0 || app.count("--density") + app.count("--sparsity-factor") > 0;
  if (a.input_size == 0 || a.output_size == 0 || !has_density)
    throw CLI::ValidationError("weights",
                               "give --matrix FILE, or --input-size, --output-size and --density");
}

void add_block_option(CLI::App& app, BlockShape& block) {
  app.add_option_function<std::string>(
         "--block-size", [&block](const std::string& text) { block = parse_block(text); },
         "rows and columns of the non-zero blocks, 4 or {4,8}; sizes need not be multiples; a "
         "matrix of elements is cut into blocks, gaps filled with zeros")
      ->type_name("BLOCK")
      ->default_str("1");
}

void add_layer_options(CLI::App& app, LayerArguments& a) {
  app.add_option("--batch-size", a.batch_size, "columns of S and Q")
      ->check(size_range())
      ->capture_default_str();
  add_block_option(app, a.block);
  static const std::map<std::string, PhaseChoice> phases{{"all", PhaseChoice::All},
                                                         {"fwd", PhaseChoice::Fwd},
                                                         {"bwd", PhaseChoice::Bwd},
                                                         {"wu", PhaseChoice::Wu}};
  app.add_option("--single-phase", a.phase,
                 "all: forward, input gradient, weight gradient; fwd; bwd: forward and input "
                 "gradient; wu: forward and weight gradient")
      ->transform(CLI::CheckedTransformer(phases).description(""))
      ->type_name("PHASE")
      ->default_str("all");
  static const std::map<std::string, DataType> types{
      {"float", DataType::Float}, {"half", DataType::Half}, {"bfloat16", DataType::BFloat16}};
  app.add_option("--data-type", a.data_type, "of R, S and Q: float, half or bfloat16")
      ->transform(CLI::CheckedTransformer(types).description(""))
      ->type_name("TYPE")
      ->default_str("half");
  app.add_option("--partials-type", a.partials_type, "of sums: float, or half for half blocks")
      ->transform(CLI::CheckedTransformer(types).description(""))
      ->type_name("TYPE")
      ->default_str("float");
}

void add_machine_options(CLI::App& app, LayerArguments& a) {
  app.add_option("--machine", a.machine, "gc200, bow, mk1, FILE.json, or host: this computer")
      ->capture_default_str();
  app.add_option("--tiles-per-ipu", a.tiles, "tiles to use; default: all the machine has");
}

void add_planner_options(CLI::App& app, LayerArguments& a) {
  auto* options = app.add_option("--matmul-options", a.matmul_options,
                                 "planner options as JSON, for example "
                                 "{\"metaInfoBucketOversizeProportion\": 0.5}")
                      ->type_name("JSON");
  auto* constraints =
      app.add_option("--plan-constraints", a.plan_constraints,
                     "parts of the plan to fix, for example {\"partition\": {\"x\": 4}}")
          ->type_name("JSON");
  auto* cache =
      app.add_option("--plan-cache", a.plan_cache, "folder of plans made before, read and added to")
          ->type_name("DIR");
  static const std::map<std::string, OnNoFit> no_fit{{"fail", OnNoFit::Fail},
                                                     {"best-effort", OnNoFit::BestEffort}};
  app.add_option("--on-no-fit", a.on_no_fit,
                 "without a plan: fail, and say what would help; or best-effort: take more of the "
                 "tiles' memory or cut the batch into parts, and say so")
      ->transform(CLI::CheckedTransformer(no_fit).description(""))
      ->type_name("CHOICE")
      ->default_str("fail");
  app.add_option("--plan", a.plan_file,
                 "take the plan of this file, as tessera plan --json writes it")
      ->type_name("FILE")
      ->excludes(options)
      ->excludes(constraints)
      ->excludes(cache)
      ->excludes("--on-no-fit");
}

}  // namespace tessera::tools::internal
