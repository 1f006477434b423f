#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/block_shape.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/planner/static_plan.hpp"

namespace tessera::bench {

// A published measurement of a product in half: a matrix [side][side] with a static pattern times a
// dense matrix [side][batch].
struct StaticPoint {
  std::int64_t side = 0, batch = 0;
  BlockShape block;
  double density = 0;
  double teraflops = 0;  // 10^12 flops per second of non-zeros: 2 * side^2 * batch * density / time

  // Returns the cycles that the product took with this clock.
  double cycles(double clock_hz) const;
};

// A point, PopLibs' plan for the pattern that was measured, and the cost of that plan with the
// counts of the pattern; there is no plan if none fits.
struct PlannedStatic {
  StaticPoint point;
  std::int64_t parts = 0, bands = 0;  // of the plan
  std::int64_t estimate = 0;          // PopLibs' own cycles of the plan
  std::optional<planner::PlanCost> cost;
  double published_cycles = 0;

  // Returns the cycles of the plan divided by the published ones, minus 1.
  double error() const { return double(cost->cycles.value) / published_cycles - 1; }
};

// Returns true if a table has the columns of static points, which name both block and batch.
bool is_static_table(std::string_view text, std::string_view name);

// Reads points from a tab-separated table with the columns m_eq_k, n, block (the side of square
// blocks), density (a number or a fraction) and tflops, in any order. Other columns are ignored.
// Throws Error{BadInput} with place, value and legal range.
std::vector<StaticPoint> read_static_points(std::string_view text, std::string_view name);

// Plans every point on a machine, with the pattern that was measured (measured_pattern).
std::vector<PlannedStatic> plan_points(const std::vector<StaticPoint>& points,
                                       const device::Machine& machine);

// The median of the magnitudes of errors, the 90th percentile, and the largest one.
struct StaticErrors {
  double median = 0, ninetieth = 0, worst = 0;
};

// Returns the errors of points; one without a plan has the error 1. Zeros if there are none.
StaticErrors errors_of(const std::vector<PlannedStatic>& points);

// Returns a table of the points with the terms of their cycles, and the errors by batch, by block
// and of all.
std::string to_text(const std::vector<PlannedStatic>& points, const device::Machine& machine);

}  // namespace tessera::bench
