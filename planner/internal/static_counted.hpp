#pragma once

#include <cstdint>
#include <vector>

#include "tessera/planner/internal/static_expected.hpp"

namespace tessera::planner::internal {

// The blocks of one row on one tile.
struct RowOnTile {
  std::int64_t row = 0, blocks = 0;

  friend bool operator==(const RowOnTile&, const RowOnTile&) = default;
};

// The rows of a layout, from which the prices of sums and of kernels follow.
struct LayoutRows {
  std::vector<std::vector<RowOnTile>> of_tile;  // rows ascend
  std::vector<std::int64_t> depth;              // [block rows] tiles that have blocks of the row
};

LayoutRows rows_of(const StaticLayout& layout, const BlockPattern& pattern);

// Returns the cycles of the kernel on one tile. Rows of elements are dealt to workers in order,
// until each has its share of the elements; where three rows or fewer would leave workers idle, two
// groups of workers take half of the columns each. Workers of block kernels share the columns.
std::int64_t counted_kernel_cycles(const StaticCase& c, const std::vector<RowOnTile>& rows,
                                   std::int64_t columns);

// The sums that a tile adds after the kernel: of every row that lies on several tiles, each of them
// adds an equal share of the elements.
struct CountedSums {
  std::int64_t elements = 0;  // results of the tile
  std::int64_t operands = 0;  // sums that it adds, its own included

  // Returns the mean number of sums for an element, rounded up; 0 without elements.
  std::int64_t depth() const;
};

CountedSums sums_of(const StaticCase& c, const LayoutRows& rows, std::size_t tile,
                    std::int64_t columns);

// Returns the cost of a plan with the counts of its pattern and the prices of the machine.
PlanCost counted_cost(const StaticCase& c, const StaticPlan& plan, const BlockPattern& pattern);

}  // namespace tessera::planner::internal
