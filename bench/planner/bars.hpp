#pragma once

#include <string>
#include <vector>

#include "tessera/bench/planner/quality.hpp"
#include "tessera/bench/planner/speed.hpp"

namespace tessera::bench {

// A promise with a number.
struct Bar {
  enum class Side { AtMost, AtLeast };

  std::string name;
  double figure = 0;
  Side side = Side::AtMost;
  double limit = 0;

  bool met() const { return side == Side::AtMost ? figure <= limit : figure >= limit; }
};

// One line a bar: name, figure, bar, "ok" or "short".
std::string to_text(const std::vector<Bar>& bars);

std::vector<Bar> speed_bars();
// Plans equal to enumeration's, of the recorded layers.
std::vector<Bar> optimality_bars();
std::vector<Bar> quality_bars(const QualityRequest& request, Executor& executor);

}  // namespace tessera::bench
