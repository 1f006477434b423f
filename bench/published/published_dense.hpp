#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/data_type.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/planner/dense_plan.hpp"

namespace tessera::bench {

// A published measurement of a dense product: a matrix [side][side] times one of [side][batch].
struct DensePoint {
  DataType type = DataType::Half;
  std::int64_t side = 0, batch = 0;
  double teraflops = 0;  // 10^12 flops per second: 2 * side^2 * batch / time
};

// A point and its plan; there is no plan if no partition fits the memory.
struct PlannedDense {
  DensePoint point;
  std::optional<planner::DensePlan> plan;
  double teraflops = 0;

  // Returns the planned rate divided by the published one, minus 1.
  double error() const { return teraflops / point.teraflops - 1; }
};

// Returns the percentage of a pass' cycles that these terms take together.
double percent_of(const planner::PassCost& cost, std::initializer_list<planner::Term> terms);

// Returns true if a table has the columns of dense points.
bool is_dense_table(std::string_view text, std::string_view name);

// Reads points from a tab-separated table with the columns dtype (FP16 or FP32), m_eq_k, n and
// tflops, in any order. Other columns are ignored. Throws Error{BadInput} with place, value and
// legal range.
std::vector<DensePoint> read_dense_points(std::string_view text, std::string_view name);

// Plans every point on a machine. runtime::DensePass runs such a plan in the planned cycles.
std::vector<PlannedDense> plan_points(const std::vector<DensePoint>& points,
                                      const device::Machine& machine);

// Returns a table of the points with the terms of their cycles, and the median and worst error.
std::string to_text(const std::vector<PlannedDense>& points, const device::Machine& machine);

}  // namespace tessera::bench
