#pragma once

#include <string>
#include <string_view>

#include "tessera/tools/inputs.hpp"

namespace tessera::tools {

// What the rows of a table have in common.
struct TableRequest {
  device::Machine machine;
  planner::Options options;
  PlanSource& source;
};

// Plans every row of a tab-separated table and gives the table back with our columns beside:
// our_X our_Y our_Z our_cycles our_temp our_nz our_mi (partition, total cycles, largest temporary
// bytes of a tile, values and forward words of a bucket; empty without a plan) and our_ms
// (processor milliseconds of planning that row). Rows keep their text and their line ends.
//   columns read, in any order   output_size, input_size, batch (1 .. 2^31 - 1), block (side of the
//                                square blocks), density (0 .. 1), type (float
//                                or half), passes (all, fwd, bwd or wu)
//   and if there is one          tiles (1 .. the machine's; empty: all)
// All rows are checked before the first is planned: Error{BadInput} "<name>:<line>: <column> is
// <value>; it must be <legal>". What the options make impossible for a row is the planner's error
// with that place before it. A plan a row.
std::string plan_table(std::string_view text, std::string_view name, const TableRequest& request);

}  // namespace tessera::tools
