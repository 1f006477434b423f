#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/planner/internal/static_cut_counts.hpp"
#include "tessera/planner/internal/static_expected.hpp"
#include "tessera/planner/internal/static_load.hpp"
#include "tessera/planner/internal/static_sums.hpp"

namespace tessera::planner::internal {

// Returns the cycles of the kernel on one tile. Rows of elements are dealt to workers in order,
// until each has its share of the elements; where three rows or fewer would leave workers idle, two
// groups of workers take half of the columns each. Workers of block kernels share the columns.
std::int64_t counted_kernel_cycles(const StaticCase& c, std::span<const RowOnTile> rows,
                                   std::int64_t columns);

// The largest figures of all tiles in one pass. A step takes as long as its slowest tile.
struct CountedCost {
  std::int64_t receive = 0, receive_values = 0, multiply = 0, receive_sums = 0,
               reduce = 0;                                                  // cycles
  std::int64_t operands = 0, with_values = 0, with_sums = 0, reducing = 0;  // bytes of a tile
  std::int64_t home = 0;  // bytes of a tile between passes that no earlier pass has
  std::int64_t transpose = 0, with_turned = 0;  // cycles and bytes of blocks that are transposed
  std::int64_t words = 0, offset = 0;  // largest count and largest offset in the words of a kernel

  // Sets the cycles of the sums that a tile adds.
  void add_sums(const StaticCase& c, const CountedSums& sums);

  // Makes every figure the larger one of the two.
  void include(const CountedCost& other);
};

// The same for the passes of a problem; those that it does not have are empty.
struct CountedPasses {
  CountedCost fwd, grad_a, grad_w;

  // Returns the largest number in the words of a kernel, and whether it fits 16 bits.
  std::int64_t largest_word() const;
  bool fits_words() const;
};

// The columns of a part of the batch, and the number of parts.
struct PartOfBatch {
  std::int64_t columns = 1, parts = 1;
  bool away = false;  // the values are stored on other tiles than those that multiply them

  // Returns true if the values are brought to the tiles of the part.
  bool brings_values() const { return parts > 1 || away; }
};

// Returns what the tiles of a part need in Fwd or GradA. Each part stores an equal share of the
// values. In GradA tiles transpose their blocks; the load is then that of the transposed pattern.
CountedCost cost_of_load(const StaticCase& c, const StaticLoad& load, const PartOfBatch& part,
                         Pass pass = Pass::Fwd);

// Returns what all passes of the problem need if the batch has `parts` parts of this layout, with
// `columns` columns each. GradA needs the transposed counts. If GradA is alone, only its cost is
// set, and `loads.load` has the counts of the transposed pattern.
CountedPasses counted_cut(const StaticCase& c, const CutLoads& loads, std::int64_t columns,
                          std::int64_t parts);

// Returns what the tiles of all parts of a plan need.
CountedPasses counted_parts(const StaticCase& c, const StaticPlan& plan,
                            const BlockPattern& pattern);

// Returns the cycles of barriers and launches. Operands and the results of Fwd and GradA are put in
// order, the kernel runs, GradA transposes its blocks before, and results on several tiles are
// added. The values of a batch in several parts have no tile of their own, so they take an exchange
// besides that of the operands.
std::int64_t counted_waiting(const StaticCase& c, Pass pass, bool values_travel, bool adds);

// Returns the cycles in which every tile arranges its run of these rows of an operand.
std::int64_t arrange_rows(const StaticCase& c, std::int64_t rows);

// Returns the cost of a pass in which the slowest tiles take this long.
PassCost pass_cost_of(const StaticCase& c, const CountedCost& cost, Pass pass);

// Returns the cost of a plan whose passes cost this.
PlanCost plan_cost_of(const StaticCase& c, const CountedPasses& cost);

}  // namespace tessera::planner::internal
