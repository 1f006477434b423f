#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "tessera/planner/internal/lower_bound.hpp"
#include "tessera/planner/internal/search.hpp"

namespace tessera::planner::internal {
namespace {

// A depth-first branch and bound over boxes of partitions. Every box is split on one side, its
// parts are bounded at once, and they are entered in the order of their bounds.
//
// The key of a partition is its cycles, its temporary bytes and its counts of x, y and z; of a box,
// the least of each. The partitions with the least keys are found, so the answer does not depend on
// the order of the search.
class BoundSearch {
 public:
  BoundSearch(const Case& c, const SearchBounds& bounds) : case_(c), bounds_(bounds) {}

  SearchOutcome run() {
    if (count_one())
      if (const auto box = whole_box(case_)) {
        PricedBox whole{*box, 0, 0};
        if (box->is_point())
          price(*box);
        else if (is_worth(whole))
          enter(whole);
      }
    return std::move(outcome_);
  }

 private:
  struct PricedBox {
    Box box;
    std::int64_t cycles = 0, temp = 0;
  };

  // The parts of a box that are still to be searched, in the order of their bounds.
  struct OpenParts {
    std::array<PricedBox, kMostBoxParts> boxes;
    std::size_t count = 0;

    void insert(const PricedBox& part) {
      const auto is_less = [](const PricedBox& a, const PricedBox& b) {
        return std::array{a.cycles, a.temp} < std::array{b.cycles, b.temp};
      };
      const auto first = boxes.begin(), last = first + std::ptrdiff_t(count++);
      *last = part;
      std::rotate(std::upper_bound(first, last, part, is_less), last, last + 1);
    }
  };

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
    return std::ssize(outcome_.found) < bounds_.count || comes_before(least, outcome_.found.back());
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

  // Prices a part if it is a single partition, and keeps it for later otherwise.
  void add(PricedBox part, OpenParts& parts) {
    if (!count_one() || !narrow(case_, part.box)) return;
    if (part.box.is_point())
      price(part.box);
    else if (is_worth(part))
      parts.insert(part);
  }

  void enter(const PricedBox& whole) {
    OpenParts parts;
    for (const Box& part : parts_of(whole.box)) add({part}, parts);
    for (std::size_t i = 0; i < parts.count && !done_ && !outcome_.limit_reached; ++i)
      if (is_still_wanted(parts.boxes[i])) enter(parts.boxes[i]);
  }

  const Case& case_;
  const SearchBounds& bounds_;
  SearchOutcome outcome_;
  bool done_ = false;  // the one partition that SearchBounds::any asks for is found
};

}  // namespace

SearchOutcome search_by_bounds(const Case& c, const SearchBounds& bounds) {
  return BoundSearch(c, bounds).run();
}

}  // namespace tessera::planner::internal
