#include "tessera/planner/internal/static_searcher.hpp"

#include <utility>
#include <vector>

namespace tessera::planner::internal {

StaticSearcher::SimilarRows* StaticSearcher::similar() {
  if (!is_ordered_) {
    is_ordered_ = true;
    const std::vector<std::int64_t> order = similar_rows(counts_.pattern());
    if (!order.empty())
      similar_ = std::make_unique<SimilarRows>(with_row_order(counts_.pattern(), order));
  }
  return similar_.get();
}

FoundCut StaticSearcher::search(const StaticCase& c, const StaticLimits& limits) {
  Corrections& corrections = corrections_[{c.problem.grad_a, c.problem.grad_w, c.grad_a_alone}];
  FoundCut found{search_by_counts(c, counts_, limits, corrections), {}};
  SimilarRows* const rows = similar();
  if (rows == nullptr || !found.counted.best) return found;
  // The corrections of the rows as they are are a good start, and must not be forgotten.
  Corrections copy = corrections;
  const StaticCase ordered{c.problem, c.machine, rows->counts.counts(), c.grad_a_alone};
  CountedSearch other = search_by_counts(ordered, rows->counts, limits, copy, found.counted.best);
  if (other.best && other.cost.cycles < found.counted.cost.cycles)
    found.in_similar_rows = std::move(other);
  return found;
}

StaticAssignment StaticSearcher::assignment_of(const StaticCase& c, const FoundCut& found,
                                               bool similar) {
  if (!similar) return internal::assignment_of(c, counts_.pattern(), found.counted.best.value());
  const StaticCase ordered{c.problem, c.machine, similar_->counts.counts(), c.grad_a_alone};
  StaticAssignment result = internal::assignment_of(ordered, similar_->pattern.view(),
                                                    found.in_similar_rows.value().best.value());
  for (StaticLayout& layout : result.layouts)
    layout.tile_of = tiles_in_given_order(layout.tile_of, similar_->pattern);
  return result;
}

}  // namespace tessera::planner::internal
