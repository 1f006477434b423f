#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "tessera/study/cost_model.hpp"

namespace tessera::study {

// The way in which a break-even density is searched.
struct DensityGrid {
  std::int64_t steps = 1000;  // the density is a multiple of 1 / steps
  // Look at the middle of the interval, and never at a density of 1; else about where the lines
  // meet.
  bool halves = false;

  // Costs by density that are known already, and the density to look at first if there are none.
  std::vector<std::pair<double, std::optional<double>>> known = {};
  double guess = 0.5;

  // Is called with the density and the cost of every look.
  std::function<void(double, const Cost&)> seen = {};
  std::function<bool()> is_stopped = {};  // ends the search early
};

// Returns the largest density of the grid at which a random pattern of the form's blocks costs less
// than `dense`. Costs of sparse layers grow with density, so the search narrows an interval. No
// cost means that nothing fits. A density of 1 is never the result: a full matrix that costs less
// than `dense` is a better dense program, and `dense` is then the cost of that one.
double break_even(CostModel& model, const Form& form, double dense, const DensityGrid& grid = {});

}  // namespace tessera::study
