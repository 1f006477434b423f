#pragma once

#include <string>
#include <string_view>

#include "tessera/tools/options/inputs.hpp"

namespace tessera::tools {

// The settings that all rows of a table share.
struct TableRequest {
  device::Machine machine;
  planner::Options options;
  PlanSource& source;
};

// Plans every row of a tab-separated table and returns the table with these columns added: our_X
// our_Y our_Z our_cycles our_temp our_nz our_mi (partition, total cycles, largest temporary bytes
// of a tile, values and forward words of a bucket; empty if there is no plan) and our_ms (processor
// milliseconds of planning that row). Rows keep their text and their line ends.
//   columns read, in any order   output_size, input_size, batch (1 .. 2^31 - 1), block (side of the
//                                square blocks), density (0 .. 1), type (float
//                                or half), passes (all, fwd, bwd or wu)
//   optional column              tiles (1 .. the machine's; empty: all)
// All rows are checked before the first is planned; throws Error{BadInput} "<name>:<line>: <column>
// is <value>; it must be <legal>". If the options are impossible for a row, throws the planner's
// error with that place in front. Makes one plan per row.
std::string plan_table(std::string_view text, std::string_view name, const TableRequest& request);

}  // namespace tessera::tools
