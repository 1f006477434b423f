#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/matmul.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/planner/plan.hpp"
#include "tessera/sparse/pattern.hpp"
#include "tessera/tools/options/layer_arguments.hpp"
#include "tessera/tools/options/pod_arguments.hpp"

namespace CLI {
class App;
}

namespace tessera::tools {

// The last stage of a run.
enum class StopAfter {
  Plan,    // plan and encode; --plan-only
  Build,   // also build the programs, which checks that they fit the tiles; --compile-only
  Passes,  // also run the passes, without a check of the results; --ignore-data
  Checks   // also check the results
};

// A request to flip one bit in one pass.
struct FaultRequest {
  Pass pass = Pass::Fwd;
  device::Fault fault;
  std::optional<std::int64_t> device = {};  // of a pod; no value: not given
};

// --self-check: None; Check ends the run where a check fails; Repair first runs that pass again.
enum class SelfCheck { None, Check, Repair };

// --spilling: the placement of blocks that do not fit at home. FewestSteps and Greedy are those of
// partitioner::Spilling; EvenLoad is FewestSteps with EncodeOptions::even_load.
enum class SpillChoice { FewestSteps, Greedy, EvenLoad };

// The command line of sparse_fc_layer, checked as far as is possible without reading a file.
struct Arguments : LayerArguments {
  sparse::PatternSpec pattern;  // of a random pattern
  std::optional<MatMulProblem>
      product;             // run a product, whose sizes, side and transposes these are
  bool is_static = false;  // the pattern stays: runtime::StaticLayer
  std::optional<std::int64_t> static_parts, static_bands;  // that its plan must have
  bool is_block_mask = false;  // `matrix` is a text of 0 and 1, an entry for each block
  bool is_mask_transposed = false;
  std::string mask_out;                 // path for the mask of the weights; empty: none
  std::optional<SpillChoice> spilling;  // no value: not given, FewestSteps
  std::uint64_t seed = 1;               // --variable-seed takes it from the clock
  StopAfter stop = StopAfter::Checks;
  bool isolate = false;         // ExchangeMode::Isolate instead of Share
  int threads = 0;              // of this computer; 0: all
  std::string values, input;    // .npy files with the non-zeros, with S [inputs][batch]
  std::string output_gradient;  // .npy file with dQ [outputs][batch]; empty: random
  std::string trace;            // path for the trace of all passes; empty: none
  // The tiles of the trace: the first one and their number; 0: all tiles.
  std::int64_t trace_first_tile = 0, trace_tiles = 0;
  std::string buckets;           // file of encoded weights to run; empty: weights are encoded
  std::string save_buckets;      // path for a file of the encoded weights; empty: none
  bool names_machine = false;    // the command line names a machine or a number of tiles
  std::string output_dir, html;  // paths for results and the page; empty: none
  bool json = false, csv = false, quiet = false, verbose = false;
  std::vector<std::pair<std::string, std::string>> configuration;  // {option, effective value}
  bool report_plan = false, report_cycles = false, report_serial_splits = false, profile = false;
  bool report_tiles = false;
  bool explain = false;           // why the planner chose the plan
  int replicas = 1;               // with several ranks, of runs of rows; 0: the cheapest number
  double timeout_seconds = 300;   // of a rank that waits for others; for several ranks only
  double limit_milliseconds = 0;  // no step begins after this time; 0: no limit
  SelfCheck self_check = SelfCheck::None;
  std::optional<FaultRequest> fault;
  PodArguments pod;                    // several devices; not used: one
  bool devices_side_by_side = false;   // this computer keeps all devices, else one after another
  std::int64_t devices_simulated = 0;  // of a pod; 0: all
};

// Adds every option of the program to a command line and sets the callback of `app`. When `app` has
// parsed, the callback fills and checks `arguments` and then calls `parsed`.
void add_run_options(
    CLI::App& app, const std::shared_ptr<Arguments>& arguments,
    const std::function<void()>& parsed = [] {});

// Adds the options that a run has besides the description of its layer: --spilling, seeds, stages,
// reports, output files and those of this computer.
void add_common_run_options(CLI::App& app, Arguments& arguments);

// Completes the arguments of such a run when `app` has parsed, and refuses options that do not
// apply to the machine.
void finish_common_run_options(const CLI::App& app, Arguments& arguments);

// A parsed command line. If `exit` has a value, help or a usage error has been printed and the
// program ends with that code; otherwise `arguments` describe a run.
struct Parsed {
  Arguments arguments;
  std::optional<int> exit;
};

// Parses the command line of a program that runs layers: sparse_fc_layer, or one that takes other
// names. The first word is the path of the program. Throws Error{Internal} if help could not be
// written.
Parsed parse_arguments(const std::vector<std::string>& words,
                       const char* program = "sparse_fc_layer", const char* description = nullptr);

}  // namespace tessera::tools
