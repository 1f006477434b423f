#pragma once

#include <string>

#include "tessera/partitioner/buckets.hpp"

namespace tessera::tools {

// Was the chart library there when the programs were built?
bool can_make_pages();

// What a page shows beside the report; left out where empty.
struct PageExtras {
  std::string explanation;  // JSON of planner::to_json(Explanation)
  std::string tiles;        // JSON list of {tile, x, y, z, values, fill}
};

// The values and the share of its room that each tile's bucket of the layout holds, as JSON.
std::string tiles_json(const partitioner::Buckets& buckets);

// The cost report, JSON of runtime::to_json, as one HTML page that needs nothing else, no network
// either: charts, and a table of the same figures under each. Error{InvalidArgument} that says what
// is missing when can_make_pages() is false. 1.3 MB and some 150 bytes for each tile of a report
// with tiles; below 2 MB for 1472. Any number of threads.
std::string report_page(const std::string& report_json, const PageExtras& extras);
// The same for what `tessera sweep --json` or `tessera crossover --json` prints.
std::string study_page(const std::string& study_json);

}  // namespace tessera::tools
