#include "tessera/tools/sparse_fc_layer/arguments.hpp"

#include <CLI/CLI.hpp>
#include <charconv>
#include <iostream>
#include <limits>
#include <map>
#include <sstream>
#include <system_error>

#include "tessera/base/error.hpp"
#include "tessera/tools/exit_code.hpp"

namespace tessera::tools {
namespace {

constexpr std::int64_t kLargestSize = std::numeric_limits<std::int32_t>::max();

const CLI::Range& size_range() {
  static const CLI::Range range(std::int64_t{1}, kLargestSize);
  return range;
}

// The library itself turns -1 into 2^64 - 1, and what is larger too.
CLI::Validator is_seed() {
  return {[](std::string& text) {
            std::uint64_t seed = 0;
            const char* end = text.data() + text.size();
            const auto read = std::from_chars(text.data(), end, seed);
            return read.ec == std::errc() && read.ptr == end
                       ? std::string()
                       : "Value " + text + " is no whole number in 0 .. 2^64 - 1";
          },
          "0 .. 2^64 - 1"};
}

void add_weights(CLI::App& app, Arguments& a) {
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
  app.add_option("--seed", a.seed, "of the pattern, of values a file does not hold, of operands")
      ->check(is_seed())
      ->capture_default_str();
}

void add_layer(CLI::App& app, Arguments& a) {
  app.add_option("--batch-size", a.batch_size, "columns of S and Q")
      ->check(size_range())
      ->capture_default_str();
  app.add_option("--block-size", a.block_size,
                 "side of the square non-zero blocks; a matrix of elements is cut into blocks, "
                 "gaps filled with zeros")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{4096}))
      ->capture_default_str();
  static const std::map<std::string, PhaseChoice> phases{{"all", PhaseChoice::All},
                                                         {"fwd", PhaseChoice::Fwd},
                                                         {"bwd", PhaseChoice::Bwd},
                                                         {"wu", PhaseChoice::Wu}};
  app.add_option("--single-phase", a.phase,
                 "all: forward, input gradient, weight gradient; fwd; bwd: forward and input "
                 "gradient; wu: forward and weight gradient")
      ->transform(CLI::CheckedTransformer(phases))
      ->type_name("PHASE")
      ->default_str("all");
  static const std::map<std::string, DataType> types{{"float", DataType::Float},
                                                     {"half", DataType::Half}};
  app.add_option("--data-type", a.data_type, "float or half; sums are always float")
      ->transform(CLI::CheckedTransformer(types))
      ->type_name("TYPE")
      ->default_str("half");
}

void add_machine(CLI::App& app, Arguments& a) {
  app.add_option("--machine", a.machine, "gc200, bow, mk1 or FILE.json")->capture_default_str();
  app.add_option("--tiles-per-ipu", a.tiles, "tiles to use; default: all the machine has");
  app.add_option("--matmul-options", a.matmul_options,
                 "planner options as JSON, for example "
                 "{\"metaInfoBucketOversizeProportion\": 0.5}")
      ->type_name("JSON");
  app.add_option("--plan-constraints", a.plan_constraints,
                 "parts of the plan to fix, for example {\"partition\": {\"x\": 4}}")
      ->type_name("JSON");
  app.add_flag("--isolate", a.isolate,
               "give every tile its own memory and copy between them: slower, same results");
  app.add_option("--threads", a.threads, "threads of this computer; 0: all")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
}

void check_sizes(const Arguments& a, const CLI::App& app) {
  if (!a.matrix.empty()) return;
  const bool has_density = app.count("--density") + app.count("--sparsity-factor") > 0;
  if (a.input_size == 0 || a.output_size == 0 || !has_density)
    throw CLI::ValidationError("weights",
                               "give --matrix FILE, or --input-size, --output-size and --density");
}

}  // namespace

Parsed parse_arguments(int argc, const char* const* argv) {
  Parsed parsed;
  CLI::App app(
      "Plans, encodes and runs a sparse fully connected layer on a modelled tile machine, forward "
      "and backward, and checks every result against double precision.");
  app.footer(
      "Exit codes: 0 all right, 1 a check failed, 2 usage, 3 bad input file, 4 nothing fits, "
      "6 internal.\nExample: sparse_fc_layer --input-size 1024 --output-size 1024 --density 0.1 "
      "--batch-size 64");
  add_weights(app, parsed.arguments);
  add_layer(app, parsed.arguments);
  add_machine(app, parsed.arguments);
  try {
    app.parse(argc, argv);
    check_sizes(parsed.arguments, app);
  } catch (const CLI::ParseError& error) {
    std::ostringstream help, complaint;
    parsed.exit = app.exit(error, help, complaint) == 0 ? kOk : kUsage;
    std::cerr << complaint.str();
    print_results(help.str());
  }
  return parsed;
}

}  // namespace tessera::tools
