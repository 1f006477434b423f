#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/pass.hpp"
#include "tessera/base/phase.hpp"
#include "tessera/planner/options.hpp"
#include "tessera/report/report.hpp"

namespace tessera::report {

// The version of the JSON form of a report. It is raised if a reader of the old form would misread
// the new one.
inline constexpr std::int64_t kReportSchemaVersion = 1;

// Facts about a run besides its layer: the program that made the report, and its settings.
struct ReportContext {
  std::string tool, version;
  std::uint64_t seed = 0;
  planner::Options options;                                        // of the plan
  std::vector<std::pair<std::string, std::string>> configuration;  // {option, effective value}
  std::vector<std::string> notes;
  double weight_scale = 1;  // by which the weights of the file were multiplied
  bool is_partial = false;  // the run was stopped before all passes had run
  bool with_tiles = false;  // adds the figures of each tile, about 20 numbers per tile
};

// Returns "passed", "failed", "unchecked" (no result was compared), "planned" (no pass ran) or
// "partial".
std::string status_of(const LayerReport& report, const ReportContext& context);

// Returns the cycles that the plan estimates for a phase of a pass, as in the table of to_text.
// Phase::Overhead has the barriers and launches.
Cycles planned_cycles(const LayerReport& report, Pass pass, Phase phase);

// Returns the report as JSON that obeys docs/report.schema.json. Keys are in snake_case and end
// with the unit; cycles and bytes are whole numbers; "how" says which figures are counted, modelled
// or measured; "planned" has the output of `tessera plan --json`. Equal reports give equal bytes.
// Thread-safe.
std::string to_json(const LayerReport& report, const ReportContext& context);

// Returns one CSV row for each pass and phase, under a heading with units. Text is quoted where CSV
// requires it.
std::string to_csv(const LayerReport& report, const ReportContext& context);

// Returns the heading alone, for files that collect the rows of many reports.
std::string csv_heading();

// Returns a text as one cell of CSV: quoted where CSV requires it, and with a ' in front if a
// spreadsheet would take it for a formula.
std::string csv_quoted(const std::string& text);

}  // namespace tessera::report
