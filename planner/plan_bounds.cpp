#include "tessera/planner/plan_bounds.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/base/error.hpp"
#include "tessera/base/float_mode.hpp"
#include "tessera/planner/internal/bound_search.hpp"
#include "tessera/planner/internal/dense_layer.hpp"
#include "tessera/planner/internal/two_layouts.hpp"
#include "tessera/planner/layouts.hpp"

namespace tessera::planner {
namespace {

using internal::kUnbounded;

void refuse_parity(const Options& options) {
  if (options.poplibs_parity)
    throw_invalid("plans below a limit cannot be searched with popLibsParity; leave it out");
}

std::int64_t bucket_floor(const Problem& problem, const device::Machine& machine,
                          const Options& options, std::int64_t boxes) {
  internal::CaseSet set = internal::make_cases({problem, machine, options});
  for (internal::Case& c : set.cases) c.options.search_limit = kUnbounded;  // `boxes` is the limit
  internal::BoundSearch search(set.cases, internal::temp_bounds(machine, options).front(), {});
  while (!search.is_settled() && std::int64_t(search.open_boxes()) < boxes) search.advance();
  return search.least();
}

// The passes of a plan with two layouts cost no less than those of each layout alone; the move of
// the values between them comes on top.
std::int64_t two_layouts_floor(const Problem& problem, const device::Machine& machine,
                               const Options& options, std::int64_t boxes) {
  if (!internal::may_split(problem, options)) return kUnbounded;
  std::int64_t least = kUnbounded;
  for (const bool grad_w_transposed : {false, true}) {
    if (grad_w_transposed && !problem.grad_w) break;
    const TwoProblems both = two_problems(problem, grad_w_transposed);
    const std::int64_t forward = bucket_floor(both.forward, machine, options, boxes);
    const std::int64_t backward = bucket_floor(both.transposed, machine, options, boxes);
    if (forward != kUnbounded && backward != kUnbounded)
      least = std::min(least, forward + backward);
  }
  return least;
}

std::int64_t dense_floor(const Problem& problem, const device::Machine& machine,
                         const Options& options) {
  if (!internal::may_have_no_buckets(options)) return kUnbounded;
  return internal::floor_without_buckets(
      problem, machine,
      {.available_memory_proportion = options.available_memory_proportion,
       .partials_type = problem.partials_type});
}

}  // namespace

PlanResult plan_below(const Problem& problem, const device::Machine& machine, Cycles limit,
                      const Options& options) {
  refuse_parity(options);
  return internal::plan_fewer({problem, machine, options, nullptr},
                              std::max(limit.value, std::int64_t{0}));
}

PlanFloor plan_floor(const Problem& problem, const device::Machine& machine, const Options& options,
                     std::int64_t boxes) {
  const DefaultFloatMode mode;
  refuse_parity(options);
  if (boxes < 1) throw_invalid(fmt::format("boxes is {}; it must be 1 or more", boxes));
  const std::int64_t buckets = std::min(bucket_floor(problem, machine, options, boxes),
                                        two_layouts_floor(problem, machine, options, boxes));
  const std::int64_t least = std::min(buckets, dense_floor(problem, machine, options));
  if (least == kUnbounded) return {{}, false, false};
  return {Cycles(least), true, buckets != kUnbounded};
}

}  // namespace tessera::planner
