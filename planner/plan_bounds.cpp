#include "tessera/planner/plan_bounds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <queue>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/float_mode.hpp"
#include "tessera/planner/internal/dense_layer.hpp"
#include "tessera/planner/internal/lower_bound.hpp"
#include "tessera/planner/internal/planner_search.hpp"
#include "tessera/planner/internal/two_layouts.hpp"
#include "tessera/planner/layouts.hpp"

namespace tessera::planner {
namespace {

using internal::Bound;
using internal::Box;
using internal::Case;
using internal::kUnbounded;

void refuse_parity(const Options& options) {
  if (options.poplibs_parity)
    throw_invalid("plans below a limit cannot be searched with popLibsParity; leave it out");
}

// A part of the partitions of one case, with its bound.
struct OpenBox {
  const Case* of = nullptr;
  Box box;
  std::int64_t cycles = 0;

  // The queue has the least bound on top.
  bool operator<(const OpenBox& other) const { return cycles > other.cycles; }
};

// Bounds the cycles of all partitions of some cases, best first.
class FloorSearch {
 public:
  explicit FloorSearch(const std::vector<Case>& cases) {
    for (const Case& c : cases) {
      temp_ = internal::temp_bounds(c.machine, c.options).front();
      if (const auto box = internal::whole_box(c)) add(c, *box);
    }
  }

  // Divides boxes until as many are open. Returns kUnbounded if no partition is possible.
  std::int64_t with(std::int64_t boxes) {
    while (!open_.empty() && std::int64_t(open_.size()) < boxes) {
      const OpenBox best = open_.top();
      if (best.box.is_point()) break;  // nothing is left to divide
      open_.pop();
      for (Box part : internal::parts_of(best.box))
        if (internal::narrow(*best.of, part)) add(*best.of, part);
    }
    return open_.empty() ? kUnbounded : open_.top().cycles;
  }

 private:
  void add(const Case& c, const Box& box) {
    const Bound bound = internal::lower_bound(c, box);
    if (bound.possible && bound.temp <= temp_) open_.push({&c, box, bound.cycles});
  }

  std::priority_queue<OpenBox> open_;
  std::int64_t temp_ = 0;
};

std::int64_t bucket_floor(const Problem& problem, const device::Machine& machine,
                          const Options& options, std::int64_t boxes) {
  const internal::CaseSet set = internal::make_cases({problem, machine, options});
  return FloorSearch(set.cases).with(boxes);
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
  return internal::plan_fewer({problem, machine, options, nullptr}, limit.value);
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
