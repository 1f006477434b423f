#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/base/problem.hpp"
#include "tessera/host/cells.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/host/times.hpp"
#include "tessera/planner/plan.hpp"
#include "tessera/report/report_json.hpp"
#include "tessera/verify/verify.hpp"

namespace tessera::report {

// One pass on this computer.
struct HostPassReport {
  Pass pass = Pass::Fwd;
  bool is_dense = false;  // R multiplied with its zeros; cells are then what they would have been
  host::HostCells cells;
  double forecast_seconds = 0;
  std::int64_t runs = 0;  // that were measured; 0: planned only
  host::HostTimes times;  // of the run whose time is the median
  std::optional<verify::Verdict> verdict;
};

// Everything a run of a layer on this computer has to say, as data.
struct HostReport {
  std::string source;  // where the weights came from
  Problem problem;
  std::string cpu_model;
  host::HostCpu cpu;
  int threads = 1;
  double thread_peak_flops = 0;  // a second, of one thread; 0: not measured on this computer
  std::int64_t values = 0;       // of all groups, zeros in stored blocks included
  double encode_seconds = 0;     // set_weights, once
  std::vector<HostPassReport> passes;

  // No pass that was checked is wrong.
  bool ok() const;
  bool has_run() const;
  // Of one pass: 2 * values * z.
  double useful_flops() const;
  // Of the passes that ran, one run each.
  double seconds() const;
};

// One screen of text: layer, computer, cells and measured times per pass, verdicts, and a last line
// that says whether all is well.
std::string to_text(const HostReport& report);

// As for LayerReport (report_json.hpp), by the same schema and heading: a row for each pass and
// phase ("copy", "kernels", "rest", whose seconds add up to the pass's); cells of cycles are empty.
std::string status_of(const HostReport& report, const ReportContext& context);
std::string to_json(const HostReport& report, const ReportContext& context);
std::string to_csv(const HostReport& report, const ReportContext& context);

}  // namespace tessera::report
