#pragma once

#include <cstddef>
#include <vector>

#include "tessera/planner/planner.hpp"

namespace tessera::planner {

// planner::plan by looking at every partition: the truth, and the time the search must beat. The
// same arguments, results and errors; a layer without non-zeros is spread like any other, and dense
// plans without buckets are found by their own search.
PlanResult plan_by_enumeration(const Problem& problem, const device::Machine& machine,
                               const Options& options = {}, const PatternStats* stats = nullptr);

// The partitions with the fewest planned cycles, cheapest first, at most `count`, as constraints
// that make planner::plan choose just them. `stats` has the pattern; nullptr: it is random.
std::vector<PlanConstraints> cheapest_partitions(const Problem& problem,
                                                 const device::Machine& machine,
                                                 const Options& options, std::size_t count,
                                                 const PatternStats* stats = nullptr);

// The pairs of two layouts that cheapest_two_layouts() makes of the cheapest plans of each layout.
enum class LayoutPairs {
  All,             // those that planner::plan compares
  WithTheCheapest  // one of the two layouts has the fewest planned cycles
};

// Plans with two layouts, for GradW on either side, of the `count` cheapest plans of each layout,
// found by looking at every partition.
std::vector<Plan> cheapest_two_layouts(const Problem& problem, const device::Machine& machine,
                                       const Options& options, std::size_t count,
                                       const PatternStats* stats, LayoutPairs pairs);

// The cycles of the dense plan of all passes, found by the search of plan_dense or, if `every_cut`,
// by pricing every cut: the truth, and the time that the search must beat.
std::int64_t dense_cycles(const Problem& problem, const device::Machine& machine, bool every_cut);

// Whether both say the same: status, bound and the whole plan. How many partitions were looked at
// does not count.
bool equal_answers(const PlanResult& a, const PlanResult& b);

}  // namespace tessera::planner
