#pragma once

#include <string>
#include <vector>

#include "tessera/runtime/report.hpp"
#include "tessera/tools/exit_code.hpp"
#include "tessera/tools/sparse_fc_layer/arguments.hpp"

namespace tessera::tools {

// What came of a run. When the batch was cut into parts, the problem, the plan and the cycles of
// the report are those of one run, its verdicts those of all of them.
struct LayerRun {
  std::vector<std::string> notes;  // how the request was relaxed, that R is dense; in words
  runtime::LayerReport report;
  std::string extras;        // what was asked for beside the report, as text
  bool with_cycles = false;  // the text ends with the cycles of each pass,
  bool with_steps = false;   // with every step
};

// Plans, encodes, runs and checks what the arguments ask for. Throws Error as the stages do;
// Error{NoSolution} when there is no plan or the pattern does not fit its buckets.
LayerRun run_layer(const Arguments& arguments);

// The notes, a line each, and the report.
std::string to_text(const LayerRun& run);

// What the program answers to the shell once it has run: kOk, or kCheckFailed when a result is
// wrong.
ExitCode exit_code_of(const runtime::LayerReport& report);

}  // namespace tessera::tools
