#pragma once

#include <string>

#include "tessera/base/error.hpp"
#include "tessera/planner/options.hpp"

namespace tessera::runtime::internal {

// Returns the options of a layer whose values stay in the buckets of one layout, on the same tiles
// before and after every pass: with a dense R, travelling operands in GradW or a layout of its own
// for some passes, they would have to move between programs. Throws Error{InvalidArgument} for
// constraints that ask for the first two; `name` is that of the operation.
inline planner::Options values_at_home(planner::Options options, const std::string& name) {
  const auto refuse = [&](const char* what) {
    throw Error(ErrorCode::InvalidArgument,
                name + ": planConstraints: " + what +
                    ", so values would not stay in the buckets of the mask; omit it");
  };
  planner::PlanConstraints& c = options.constraints;
  if (c.use_dense.value_or(false)) refuse("useDense is true");
  if (!c.grad_w_exchange_buckets.value_or(true)) refuse("exchange.gradWExchangeBuckets is false");
  c.use_dense = false;
  c.grad_w_exchange_buckets = true;
  options.per_pass_plans = false;
  return options;
}

}  // namespace tessera::runtime::internal
