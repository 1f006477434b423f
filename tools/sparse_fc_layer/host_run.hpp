#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tessera/report/host_report.hpp"
#include "tessera/tools/exit_code.hpp"
#include "tessera/tools/sparse_fc_layer/arguments.hpp"

namespace tessera::tools {

// What came of a run on this computer.
struct HostRun {
  report::ReportContext context;
  report::HostReport report;
  std::vector<std::pair<std::string, std::string>> files;  // results to keep: name, bytes
  double empty_outputs = 0;  // share of the outputs without a non-zero
};

// Encodes, runs and checks what the arguments ask for on host::HostLayer. Each pass runs once to
// warm up, then 3 to 25 times, for a tenth of a second at least. An interrupt between two passes
// leaves the rest out. Throws Error as the stages do.
HostRun run_on_host(const Arguments& arguments, const char* program = "sparse_fc_layer");

// As of a LayerRun (run.hpp).
std::string to_text(const HostRun& run);
ExitCode exit_code_of(const HostRun& run);

}  // namespace tessera::tools
