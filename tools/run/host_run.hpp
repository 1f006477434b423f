#pragma once

#include <string>

#include "tessera/report/host_report.hpp"
#include "tessera/study/timing.hpp"
#include "tessera/tools/options/exit_code.hpp"
#include "tessera/tools/run/arguments.hpp"
#include "tessera/tools/run/pass_target.hpp"
#include "tessera/tools/run/weights.hpp"

namespace tessera::tools {

// The outcome of a run on this computer.
struct HostRun {
  report::ReportContext context;
  report::HostReport report;
  Files files;               // results to store
  double empty_outputs = 0;  // share of the outputs whose row has no non-zero
};

// Adds the figures of passes that are measured to the report of a run, which names them already.
class MeasuredTarget : public PassTarget {
 public:
  // All must outlive the target.
  MeasuredTarget(const layer::Layer& layer, const Weights& weights, HostRun& run)
      : PassTarget(layer, weights), run_(run) {}

  void take(PassOutcome&& outcome) final;

 protected:
  void take_times(Pass pass, const study::MedianTimes& measured);
  report::HostPassReport& report_of(Pass pass);

 private:
  HostRun& run_;
};

// Returns a run on this computer of a layer with these weights, whose passes have not begun. Of the
// weights, origin and scale are taken. `empty_outputs` is the share of the outputs whose row has no
// non-zero; `block_choice` says which block was chosen and why, or is empty.
HostRun run_of(const Arguments& arguments, const char* program, const Problem& problem,
               const Weights& weights, double empty_outputs, const std::string& block_choice);

// Encodes, runs and checks a layer on host::HostLayer as the arguments ask. Each pass runs once to
// warm up and is then measured 3 to 25 times, until the runs have taken at least a tenth of a
// second. After an interrupt the remaining passes are left out. Throws the errors of the stages.
HostRun run_on_host(const Arguments& arguments, const char* program = "sparse_fc_layer");

// Return the text and the exit code as for a LayerRun (run.hpp).
std::string to_text(const HostRun& run);
ExitCode exit_code_of(const HostRun& run);

}  // namespace tessera::tools
