#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tessera/planner/internal/boxes.hpp"
#include "tessera/planner/internal/planner_search.hpp"

namespace tessera::planner::internal {

// A best-first branch and bound over boxes of partitions, for all combinations of methods at once.
// The open box with the least bound is split on one side, and its parts are bounded and opened,
// down to single partitions, which are priced. No box is split whose bound is above the cost of the
// last plan that is wanted.
//
// A search can be stopped after any box, be asked what the cheapest plan costs at least, and be
// told to look for cheaper plans only. A request of two layouts asks the searches of both in turns.
// The cases may be of several kinds, of which each has its own cheapest plans.
//
// The key of a plan is its cycles, its temporary bytes, its case, and its counts of x, y and z; of
// a box, the least of each. The plans with the least keys are found, so the answer does not depend
// on the order of the search.
class BoundSearch {
 public:
  // `kinds` has the kind of every case, counted from 0; without it all are of one kind.
  // Wanted::count plans of each kind are looked for. The cases must outlive the search.
  BoundSearch(const std::vector<Case>& cases, std::int64_t temp_bound, const Wanted& wanted,
              std::vector<std::size_t> kinds = {});
  BoundSearch(const BoundSearch&) = delete;
  BoundSearch& operator=(const BoundSearch&) = delete;

  // Returns cycles that no wanted plan falls below, and that the cheapest one has if the search is
  // settled. Returns kUnbounded if there is none. After the limit of the search is reached, it says
  // nothing about plans that were not found.
  std::int64_t least() const;
  bool is_settled() const;

  std::size_t open_boxes() const { return open_.size(); }

  // Splits or prices the open box with the least bound. Needs an open box.
  void advance();

  // Finds all wanted plans.
  void finish();

  // Looks only for plans with fewer cycles from now on, and forgets the others.
  void lower_limit(std::int64_t fewer_than);

  // Returns the plans of each kind that are found so far, the cheapest first.
  const std::vector<std::vector<RankedPlan>>& found() const { return found_; }

  // Returns true if the search has ended at Options::search_limit, which holds for all its cases
  // together.
  bool limit_reached() const { return limit_reached_; }
  std::int64_t evaluations() const { return evaluations_; }

 private:
  struct PricedBox {
    Box box;
    std::int64_t cycles = 0, temp = 0;  // bounds
    std::size_t of = 0;                 // the place of its case
  };
  static bool comes_later(const PricedBox& a, const PricedBox& b);

  bool is_wanted(std::size_t of, const PricedParts& least) const;
  void open(PricedBox part);
  void price(const PricedBox& point);
  void drop_unwanted();

  const std::vector<Case>& cases_;
  std::int64_t temp_bound_;
  Wanted wanted_;
  std::vector<std::size_t> kinds_;
  std::vector<std::vector<RankedPlan>> found_;
  std::vector<PricedBox> open_;  // a heap
  std::int64_t examined_ = 0, evaluations_ = 0;
  bool limit_reached_ = false;
};

// The search of the planner: one that is finished, for cases of one kind.
Ranking rank_by_bounds(const std::vector<Case>& cases, std::int64_t temp_bound,
                       const Wanted& wanted);

}  // namespace tessera::planner::internal
