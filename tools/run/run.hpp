#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "tessera/report/report_json.hpp"
#include "tessera/tools/options/exit_code.hpp"
#include "tessera/tools/page/report_page.hpp"
#include "tessera/tools/run/arguments.hpp"
#include "tessera/tools/run/pass_target.hpp"
#include "tessera/tools/run/weights.hpp"

namespace tessera::tools {

// The outcome of a run. If the batch was cut into parts, the problem, the plan and the cycles of
// the report are those of the run of one part; the verdicts cover all parts.
struct LayerRun {
  report::ReportContext context;  // its notes name a relaxed request and a dense R
  report::LayerReport report;
  Files files;               // results to store
  double empty_outputs = 0;  // share of the outputs whose row has no non-zero
  PageExtras page;           // empty if no page is requested
  std::string extras;        // text that was requested besides the report
  bool with_cycles = false;  // the text ends with the cycles of each pass
  bool with_steps = false;   // and with every step
  bool keeps_tiles = false;  // the figures of tiles are kept for --report-tiles or a page
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  std::vector<std::string> traces;  // for Perfetto, one for each pass
  Files outputs;                    // of --trace, --save-buckets and --write-mask: {path, bytes}
};

// Returns true if a page of the report is to be written.
bool wants_page(const Arguments& arguments);

// Plans, encodes, runs and checks a layer as the arguments ask. Progress is written to stderr
// unless the arguments are quiet. Throws the errors of the stages, and Error{NoSolution} if there
// is no plan or the pattern does not fit its buckets.
LayerRun run_layer(const Arguments& arguments, const char* program = "sparse_fc_layer");

// Returns the notes, one per line, and the report. If passes are missing, a last line counts them.
std::string to_text(const LayerRun& run);

// Returns the exit code of a program after this run: kOk, kCheckFailed if a result is wrong, or
// kInterrupted or kTerminated if the report is partial.
ExitCode exit_code_of(const LayerRun& run);

// Runs the layer, prints the output and writes the files that the arguments ask for. Returns the
// exit code of the program.
int run_and_print(const Arguments& arguments, const char* program);

}  // namespace tessera::tools
