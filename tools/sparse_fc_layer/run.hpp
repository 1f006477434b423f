#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "tessera/report/report_json.hpp"
#include "tessera/tools/exit_code.hpp"
#include "tessera/tools/report_page.hpp"
#include "tessera/tools/sparse_fc_layer/arguments.hpp"

namespace tessera::tools {

// What came of a run. When the batch was cut into parts, the problem, the plan and the cycles of
// the report are those of one run, its verdicts those of all of them.
struct LayerRun {
  report::ReportContext context;  // its notes say how the request was relaxed, that R is dense
  report::LayerReport report;
  std::vector<std::pair<std::string, std::string>> files;  // results to keep: name, bytes
  double empty_outputs = 0;  // share of the outputs without a non-zero
  PageExtras page;           // empty when no page is asked for
  std::string extras;        // what was asked for beside the report, as text
  bool with_cycles = false;  // the text ends with the cycles of each pass,
  bool with_steps = false;   // with every step
  bool keeps_tiles = false;  // what each tile did is kept for --report-tiles or a page
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  std::vector<std::pair<Pass, std::string>> traces;  // for Perfetto
};

// Plans, encodes, runs and checks what the arguments ask for. Throws Error as the stages do;
// Error{NoSolution} when there is no plan or the pattern does not fit its buckets.
// Progress goes to stderr unless the arguments are quiet.
LayerRun run_layer(const Arguments& arguments, const char* program = "sparse_fc_layer");

// The notes, a line each, and the report; a last line says how many passes are missing.
std::string to_text(const LayerRun& run);

// What the program answers to the shell once it has run: kOk, kCheckFailed when a result is wrong,
// kInterrupted when the report is partial.
ExitCode exit_code_of(const LayerRun& run);

// Runs, prints what the arguments ask for and writes their files. What the program answers.
int run_and_print(const Arguments& arguments, const char* program);

}  // namespace tessera::tools
