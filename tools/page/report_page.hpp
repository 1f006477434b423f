#pragma once

#include <string>

#include "tessera/report/document.hpp"

namespace tessera::tools {

// Returns true if the chart library was available when the programs were built.
bool can_make_pages();

// The parts of a page besides the report. An empty part is left out.
struct PageExtras {
  std::string explanation;       // JSON of planner::to_json(Explanation)
  std::string tiles;             // JSON list of {tile, x, y, z, values, fill}
  std::string transposed_tiles;  // the same for GradA's own layout
  std::string date;              // of the page, for example "2026-11-22"
};

using report::date_of_today;

// Returns a report, the JSON of report::to_json, as one HTML page that needs no other file and no
// network. It has charts, and under each chart a table of the same figures. Throws
// Error{InvalidArgument}, which says what is missing, if can_make_pages() is false. A page has
// 1.3 MB, and about 150 bytes more for each tile of a report with tiles: less than 2 MB for 1472
// tiles. Thread-safe.
std::string report_page(const std::string& report_json, const PageExtras& extras);

// Returns the page of the output of `tessera sweep --json` or `tessera crossover --json`.
std::string study_page(const std::string& study_json);

}  // namespace tessera::tools
