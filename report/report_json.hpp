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

// Of the JSON below; raised when a reader of the old form would misread the new one.
inline constexpr std::int64_t kReportSchemaVersion = 1;

// What a reader needs to know of a run besides the layer: who made it, from what.
struct ReportContext {
  std::string tool, version;
  std::uint64_t seed = 0;
  planner::Options options;                                        // the plan was made with
  std::vector<std::pair<std::string, std::string>> configuration;  // option, effective value
  std::vector<std::string> notes;
  bool is_partial = false;  // stopped before all passes had run
  bool with_tiles =
      false;  // what each tile did too, of passes that have it: some 20 numbers a tile
};

// "passed", "failed", "unchecked" (nothing was compared), "planned" (nothing ran) or "partial".
std::string status_of(const LayerReport& report, const ReportContext& context);

// The cycles that the plan expects of a phase of a pass, as the table of to_text shows them.
Cycles planned_cycles(const LayerReport& report, Pass pass, Phase phase);

// The report as JSON, as docs/report.schema.json says: keys in snake_case with the unit at their
// end, cycles and bytes whole numbers, and "how" tells which figures are counted, modelled or
// measured. "planned" holds what `tessera plan --json` writes. Deterministic; any number of
// threads.
std::string to_json(const LayerReport& report, const ReportContext& context);

// One row for each pass and phase, under a heading with units. Text is quoted where it must be.
std::string to_csv(const LayerReport& report, const ReportContext& context);
// The heading alone, for files that many reports are added to.
std::string csv_heading();

}  // namespace tessera::report
