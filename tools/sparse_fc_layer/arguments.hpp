#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/device/engine.hpp"
#include "tessera/planner/plan.hpp"
#include "tessera/sparse/pattern.hpp"
#include "tessera/tools/layer_arguments.hpp"

namespace CLI {
class App;
}

namespace tessera::tools {

// The last thing that is done.
enum class StopAfter {
  Plan,    // planned, encoded; --plan-only
  Build,   // the programs of the passes built too, so that they fit the tiles; --compile-only
  Passes,  // run, results not looked at; --ignore-data
  Checks
};

// A bit that flips in one pass.
struct FaultRequest {
  Pass pass = Pass::Fwd;
  device::Fault fault;
};

// The command line of sparse_fc_layer, checked as far as it can be without reading a file.
struct Arguments : LayerArguments {
  sparse::PatternSpec pattern;  // of a random pattern
  std::uint64_t seed = 1;       // --variable-seed has put the clock's here
  StopAfter stop = StopAfter::Checks;
  bool isolate = false;          // copy between tiles instead of sharing memory
  int threads = 0;               // of this computer; 0: all
  std::string values, input;     // .npy files: of the pattern's non-zeros, of S [inputs][batch]
  std::string trace;             // where traces go; empty: nowhere
  std::string output_dir, html;  // where results and reports go; empty: nowhere
  bool json = false, csv = false, quiet = false, verbose = false;
  std::vector<std::pair<std::string, std::string>> configuration;  // every option's value
  bool report_plan = false, report_cycles = false, report_serial_splits = false, profile = false;
  bool report_tiles = false;
  double limit_milliseconds = 0;  // no step begins later than this; 0: no limit
  bool self_check = false;
  std::optional<FaultRequest> fault;
};

// Adds every option of the program to a command line, whose callback is then taken: `arguments` is
// filled and checked once it has parsed, then `parsed` is called.
void add_run_options(
    CLI::App& app, const std::shared_ptr<Arguments>& arguments,
    const std::function<void()>& parsed = [] {});

// What the command line asks for: a run, or an exit with this code (help or a usage error, already
// printed). Error{Internal} when help could not be written.
struct Parsed {
  Arguments arguments;
  std::optional<int> exit;
};
Parsed parse_arguments(int argc, const char* const* argv);

}  // namespace tessera::tools
