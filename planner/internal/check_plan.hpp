#pragma once

#include <string_view>

#include "tessera/planner/planner.hpp"

namespace tessera::planner::internal {

// The request that a plan must agree with.
struct Request {
  const Problem& problem;
  const device::Machine& machine;
  const Options& options;
};

// Checks a plan that was read from a text. Throws Error{BadInput}
// "<where>: plan.<field> is ..; it must be .." if it cannot be a plan of this request, which must
// be valid. Does not plan again: it accepts all values that no rule of the layout forbids. Costs
// O(terms).
void check_plan(const Plan& plan, const Request& request, std::string_view where);

}  // namespace tessera::planner::internal
