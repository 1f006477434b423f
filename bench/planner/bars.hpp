#pragma once

#include <string>
#include <vector>

#include "tessera/bench/planner/quality.hpp"
#include "tessera/bench/planner/speed.hpp"

namespace tessera::bench {

// A bar: the name of a figure and the value that it must reach.
struct Bar {
  enum class Side { AtMost, AtLeast };

  std::string name;
  double figure = 0;
  Side side = Side::AtMost;
  double limit = 0;

  bool met() const { return side == Side::AtMost ? figure <= limit : figure >= limit; }
};

// Prints one line for each bar: name, figure, bar, "ok" or "short".
std::string to_text(const std::vector<Bar>& bars);

std::vector<Bar> speed_bars();
// Dense plans of large products: the time of the search against pricing every cut.
std::vector<Bar> dense_speed_bars();
// Counts the recorded layers whose plan equals that of a full enumeration.
std::vector<Bar> optimality_bars();
std::vector<Bar> quality_bars(const QualityRequest& request, Executor& executor);

}  // namespace tessera::bench
