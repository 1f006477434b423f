#include "tessera/tools/options/layer_options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <map>

#include "tessera/tools/internal/choices.hpp"
#include "tessera/tools/options/command_line.hpp"
#include "tessera/tools/options/exit_code.hpp"
#include "tessera/tools/options/numbers.hpp"

namespace tessera::tools {
namespace {

constexpr std::int64_t kMostGroups = std::int64_t{1} << 20;

// Returns 1 - sparsity without the digits that a subtraction in binary adds: 0.1 for 0.9.
double density_of(double sparsity) {
  constexpr double kDigits = 1e15;
  return std::round((1 - sparsity) * kDigits) / kDigits;
}

// Above this share of non-zeros, a reader of --sparsity-factor probably means zeros.
constexpr double kHalf = 0.5;

constexpr const char* kBlockSize = "--block-size";
constexpr const char* kBlockRules =
    "layer sizes need not be multiples of them; weights given as elements are grouped into blocks, "
    "and gaps are filled with zeros";

BlockShape parse_block(const std::string& text) {
  constexpr std::int64_t kLargestSide = 4096;
  const auto sides = parse_pair(text);
  const auto is_side = [](std::int64_t side) { return 1 <= side && side <= kLargestSide; };
  if (!sides || !is_side(sides->first) || !is_side(sides->second))
    throw CLI::ValidationError(
        kBlockSize,
        "the value is " + text + "; it must be one side or {rows,columns}, each in 1..4096");
  return {sides->first, sides->second};
}

}  // namespace

const char* const kExitCodes =
    "Exit codes: 0 success, 1 a check failed, 2 wrong usage, 3 bad input file, 4 the layer does "
    "not fit, 6 results could not be written or internal error, 130 Ctrl-C, 143 SIGTERM.";

void add_weights_options(CLI::App& app, LayerArguments& a) {
  auto* matrix = app.add_option("--matrix", a.matrix,
                                "file of weights: .smtx, .mtx, .npz, .npy, .safetensors or a 0/1 "
                                "mask .txt; rows are outputs, columns are inputs")
                     ->type_name("FILE");
  auto* input = app.add_option("--input-size", a.input_size,
                               "number of inputs (columns) of the random pattern");
  auto* output = app.add_option("--output-size", a.output_size,
                                "number of outputs (rows) of the random pattern");
  for (CLI::Option* size : {input, output}) require_whole(size, 1, kLargestSize)->excludes(matrix);
  add_density_options(app, a, *matrix);
}

void add_density_options(CLI::App& app, LayerArguments& a, CLI::Option& file) {
  auto* density =
      app.add_option("--density", a.density, "share of non-zeros in the random pattern");
  auto* factor = app.add_option_function<double>(
      "--sparsity-factor",
      [&a](double share) {
        a.density = share;
        if (share > kHalf)
          print_warning(
              fmt::format("--sparsity-factor {0} is density {0}; for a share of {0} zeros, "
                          "give --sparsity {0}",
                          share));
      },
      "same as --density, under PopSparse's name; it is the share of NON-zeros");
  auto* sparsity = app.add_option_function<double>(
      "--sparsity", [&a](double share) { a.density = density_of(share); },
      "share of zeros in the random pattern, which is 1 minus the density");
  for (CLI::Option* share : {density, factor, sparsity})
    require_number(share, 0, 1)->excludes(&file);
  density->excludes(factor)->excludes(sparsity);
  factor->excludes(sparsity);
}

bool gives_density(const CLI::App& app) {
  return app.count("--density") + app.count("--sparsity-factor") + app.count("--sparsity") > 0;
}

void add_groups_option(CLI::App& app, LayerArguments& a) {
  require_whole(
      app.add_option("--groups", a.groups,
                     "number of independent layers of this size, each with a pattern of its own, "
                     "that are planned together"),
      1, kMostGroups)
      ->excludes("--matrix")
      ->capture_default_str();
}

void require_weights(const CLI::App& app, const LayerArguments& a) {
  if (!a.matrix.empty()) return;
  const bool has_density = a.density > 0 || gives_density(app);
  if (a.input_size == 0 || a.output_size == 0 || !has_density)
    throw CLI::ValidationError("weights",
                               "give --matrix FILE, or --input-size, --output-size and --density");
}

void add_block_option(CLI::App& app, BlockShape& block) {
  app.add_option_function<std::string>(
         kBlockSize, [&block](const std::string& text) { block = parse_block(text); },
         std::string(
             "sides of the non-zero blocks: one number or {rows,columns}, each 1 to 4096; ") +
             kBlockRules)
      ->type_name("BLOCK")
      ->default_str("1");
}

void allow_auto_block(CLI::App& app, LayerArguments& a) {
  app.remove_option(app.get_option(kBlockSize));
  app.add_option_function<std::string>(
         kBlockSize,
         [&a](const std::string& text) {
           a.chooses_block = text == "auto";
           if (!a.chooses_block) a.block = parse_block(text);
         },
         std::string("sides of the non-zero blocks: one number, {rows,columns}, each 1 to 4096, or "
                     "auto for the one of 1, 4, 8 and 16 with the least planned cost; ") +
             kBlockRules)
      ->type_name("BLOCK")
      ->default_str("1");
}

void add_layer_options(CLI::App& app, LayerArguments& a) {
  require_whole(app.add_option("--batch-size", a.batch_size,
                               "batch size: number of columns of the input S and the output Q"),
                1, kLargestSize)
      ->capture_default_str();
  add_block_option(app, a.block);
  static const std::map<std::string, PhaseChoice> phases{{"all", PhaseChoice::All},
                                                         {"fwd", PhaseChoice::Fwd},
                                                         {"bwd", PhaseChoice::Bwd},
                                                         {"wu", PhaseChoice::Wu}};
  auto* phase = app.add_option(
      "--single-phase", a.phase,
      "passes of the layer: all (forward, input gradient and weight gradient), fwd (forward), bwd "
      "(forward and input gradient) or wu (forward and weight gradient)");
  take_one_of(phase, phases)->type_name("PHASE")->default_str("all");
  add_type_options(app, a);
}

void add_type_options(CLI::App& app, LayerArguments& a) {
  static const std::map<std::string, DataType> types{
      {"float", DataType::Float}, {"half", DataType::Half}, {"bfloat16", DataType::BFloat16}};
  auto* type = app.add_option("--data-type", a.data_type,
                              "element type of the weights R, the input S and the output Q: float, "
                              "half or bfloat16; on this "
                              "computer float by default");
  take_one_of(type, types)->type_name("TYPE")->default_str("half");
  auto* sums = app.add_option("--partials-type", a.partials_type,
                              "type of partial sums: float, or half (only for half data)");
  take_one_of(sums, types)->type_name("TYPE")->default_str("float");
}

CLI::Option* offer_machines(CLI::Option* option) {
  std::vector<std::string> names = device::machine_names();
  names.emplace_back(device::kHostMachine);
  return offer_values(option, names);
}

void add_machine_options(CLI::App& app, LayerArguments& a) {
  auto* machine =
      app.add_option("--machine", a.machine,
                     "machine to model: gc200, bow, mk1 or FILE.json; host means this computer");
  offer_machines(machine)->capture_default_str();
  require_whole(app.add_option("--tiles-per-ipu", a.tiles,
                               "number of tiles to use; default: all tiles of the machine"),
                0, kLargestSize);
}

void add_planner_options(CLI::App& app, LayerArguments& a) {
  auto* options = app.add_option("--matmul-options", a.matmul_options,
                                 "planner options as a JSON object, for example "
                                 "{\"metaInfoBucketOversizeProportion\": 0.5}")
                      ->type_name("JSON");
  auto* constraints =
      app.add_option(
             "--plan-constraints", a.plan_constraints,
             "parts of the plan to fix, as a JSON object, for example {\"partition\": {\"x\": 4}}")
          ->type_name("JSON");
  auto* cache =
      app.add_option("--plan-cache", a.plan_cache,
                     "folder that stores plans; plans found there are reused, new plans are added")
          ->type_name("DIR");
  static const std::map<std::string, OnNoFit> no_fit{{"fail", OnNoFit::Fail},
                                                     {"best-effort", OnNoFit::BestEffort}};
  auto* reaction = app.add_option(
      "--on-no-fit", a.on_no_fit,
      "action if no plan fits: fail (report which changes would help) or "
      "best-effort (use more memory of each tile or split the batch, and report it)");
  take_one_of(reaction, no_fit)->type_name("CHOICE")->default_str("fail");
  app.add_option("--plan", a.plan_file, "use the plan in this file, written by tessera plan --json")
      ->type_name("FILE")
      ->excludes(options)
      ->excludes(constraints)
      ->excludes(cache)
      ->excludes("--on-no-fit");
}

}  // namespace tessera::tools
