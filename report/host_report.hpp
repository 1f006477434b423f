#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/base/problem.hpp"
#include "tessera/host/cells.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/host/times.hpp"
#include "tessera/report/dense_verdict.hpp"
#include "tessera/report/report_json.hpp"
#include "tessera/verify/self_check.hpp"
#include "tessera/verify/verify.hpp"

namespace tessera::report {

// The part of one rank in a layer that is spread over several (distributed/layer.hpp).
struct HostRank {
  std::int64_t first_row = 0, rows = 0;  // of R
  std::int64_t values = 0;
  std::int64_t threads = 1, cores = 1;  // cores that its launcher has bound it to
  std::int64_t peak_bytes = 0;          // of the process, so far
};

// The part of one rank in the run of a pass whose time is the median.
struct HostRankPass {
  double seconds = 0, wait_seconds = 0;  // waiting for what others send
  std::int64_t received_bytes = 0;
};

// The figures of one pass on this computer.
struct HostPassReport {
  Pass pass = Pass::Fwd;
  bool is_dense = false;   // R was multiplied with its zeros
  bool is_packed = false;  // R was read in packed rows, for few columns
  host::HostCells cells;   // of these two: those that a pass with cells would have
  double forecast_seconds = 0;
  std::int64_t runs = 0;  // measured runs; 0: the pass was only planned
  host::HostTimes times;  // of the run whose time is the median
  double spread = 0;      // half the range of the middle half of the runs, divided by the median
  std::optional<verify::Verdict> verdict;
  std::optional<verify::Checksums> self_check;  // no value: not requested
  std::vector<HostRankPass> ranks;              // by rank; empty: one process computes all
};

// All figures of a run of a layer on this computer, as data.
struct HostReport {
  std::string source;  // origin of the weights
  Problem problem;
  std::string cpu_model;
  host::HostCpu cpu;
  int threads = 1;
  double thread_peak_flops = 0;  // flops per second of one thread; 0: not measured
  std::int64_t values = 0;       // of all groups, with the zeros in stored blocks
  double encode_seconds = 0;     // time of one call of set_weights
  double busy = 1;    // processor time of the measured passes, as a share of that of all threads
  double load = 0;    // programs that wanted to run meanwhile, on average; 0: not known
  double stolen = 0;  // share of the time that a hypervisor gave to others
  std::vector<HostPassReport> passes;
  std::vector<HostRank> ranks;             // empty: one process computes all
  std::optional<DenseComparison> verdict;  // beside the dense layer; no value: not compared

  // Returns true if no checked pass is wrong.
  bool ok() const;

  // Returns true if at least one pass was measured.
  bool has_run() const;

  // Returns the useful flops of one pass: 2 * values * z.
  double useful_flops() const;

  // Returns the time of one run of each measured pass, in seconds.
  double seconds() const;
};

// Returns one screen of text: the layer, the computer, cells and measured times of each pass, the
// verdicts, a line with the outcome, and whether sparse pays.
std::string to_text(const HostReport& report);

// Return the same forms as for LayerReport (report_json.hpp), by the same schema and with the same
// CSV heading. The CSV has one row for each pass and phase; the phases are "copy", "kernels" and
// "rest", and their seconds add up to those of the pass. Columns of cycles are empty.
std::string status_of(const HostReport& report, const ReportContext& context);
std::string to_json(const HostReport& report, const ReportContext& context);
std::string to_csv(const HostReport& report, const ReportContext& context);

}  // namespace tessera::report
