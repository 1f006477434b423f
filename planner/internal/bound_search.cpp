#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "tessera/planner/internal/lower_bound.hpp"
#include "tessera/planner/internal/search.hpp"

namespace tessera::planner::internal {
namespace {

// A best-first branch and bound over boxes of partitions. The open box with the least bound is
// split on one side, and its parts are bounded and opened, down to single partitions, which are
// priced. So no box is split whose bound is above the cost of the last partition that is found.
//
// The key of a partition is its cycles, its temporary bytes and its counts of x, y and z; of a box,
// the least of each. The partitions with the least keys are found, so the answer does not depend on
// the order of the search.
class BoundSearch {
 public:
  BoundSearch(const Case& c, const SearchBounds& bounds) : case_(c), bounds_(bounds) {}

  SearchOutcome run() {
    if (const auto box = whole_box(case_)) open({*box});
    while (!open_.empty() && !done_ && !outcome_.limit_reached) {
      std::ranges::pop_heap(open_, comes_later);
      const PricedBox next = open_.back();
      open_.pop_back();
      if (is_still_wanted(next)) search(next.box);
    }
    return std::move(outcome_);
  }

 private:
  struct PricedBox {
    Box box;
    std::int64_t cycles = 0, temp = 0;  // bounds
  };
  static bool comes_later(const PricedBox& a, const PricedBox& b) {
    const auto key = [](const PricedBox& of) {
      const auto& [lo, hi] = of.box;
      return std::array{of.cycles, of.temp, lo.x, lo.y, lo.z, hi.x, hi.y, hi.z};
    };
    return key(a) > key(b);
  }

  // Returns false if the search has come to its limit.
  bool count_one() {
    if (outcome_.examined >= bounds_.examined) outcome_.limit_reached = true;
    if (outcome_.limit_reached || done_) return false;
    ++outcome_.examined;
    return true;
  }

  // Returns true if a partition with this key, or above it, may still be wanted.
  bool is_wanted(const PricedParts& least) const {
    if (least.temp > bounds_.temp || !is_better(least, bounds_.cycles, bounds_.best_temp))
      return false;
    const std::vector<PricedParts>& found = outcome_.found;
    // The first test is part of the second one, which g++ does not see.
    return found.empty() || std::ssize(found) < bounds_.count || comes_before(least, found.back());
  }

  static bool comes_before(const PricedParts& a, const PricedParts& b) {
    const auto key = [](const PricedParts& p) {
      return std::array{p.cycles, p.temp, p.parts.x, p.parts.y, p.parts.z};
    };
    return key(a) < key(b);
  }

  void price(const Box& point) {
    ++outcome_.evaluations;
    const PartsCost cost = cost_of(case_, point.lo);
    const PricedParts priced{point.lo, cost.cycles, cost.temp};
    if (!cost.legal || !is_wanted(priced)) return;
    std::vector<PricedParts>& found = outcome_.found;
    if (std::ssize(found) == bounds_.count) found.pop_back();
    found.insert(std::ranges::upper_bound(found, priced, comes_before), priced);
    done_ = bounds_.any;
  }

  bool is_still_wanted(const PricedBox& part) const {
    return is_wanted({part.box.lo, part.cycles, part.temp});
  }

  // Bounds a box. Returns false if it need not be searched.
  bool is_worth(PricedBox& part) const {
    const Bound bound = lower_bound(case_, part.box);
    part.cycles = bound.cycles;
    part.temp = bound.temp;
    return bound.possible && is_still_wanted(part);
  }

  // Opens a box if it is worth it.
  void open(PricedBox part) {
    if (!count_one() || !narrow(case_, part.box) || !is_worth(part)) return;
    open_.push_back(part);
    std::ranges::push_heap(open_, comes_later);
  }

  void search(const Box& box) {
    if (box.is_point()) return price(box);
    for (const Box& part : parts_of(box)) open({part});
  }

  const Case& case_;
  const SearchBounds& bounds_;
  SearchOutcome outcome_;
  std::vector<PricedBox> open_;  // a heap
  bool done_ = false;            // the one partition that SearchBounds::any asks for is found
};

}  // namespace

SearchOutcome search_by_bounds(const Case& c, const SearchBounds& bounds) {
  return BoundSearch(c, bounds).run();
}

}  // namespace tessera::planner::internal
