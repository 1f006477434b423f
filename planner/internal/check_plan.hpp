#pragma once

#include <string_view>

#include "tessera/planner/planner.hpp"

namespace tessera::planner::internal {

// What a plan has to agree with.
struct Request {
  const Problem& problem;
  const device::Machine& machine;
  const Options& options;
};

// Throws Error{BadInput} "<where>: plan.<field> is ..; it must be .." for a plan, read from
// somewhere, that can be none of this (legal) request. Does not plan again: what no rule of the
// layout forbids is believed. O(terms).
void check_plan(const Plan& plan, const Request& request, std::string_view where);

}  // namespace tessera::planner::internal
