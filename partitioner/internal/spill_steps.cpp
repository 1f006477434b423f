#include "tessera/partitioner/internal/spill_steps.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/partitioner/internal/place_within.hpp"
#include "tessera/partitioner/internal/step_bound.hpp"
#include "tessera/partitioner/internal/transport.hpp"
#include "tessera/partitioner/internal/transport_model.hpp"

namespace tessera::partitioner::internal {
namespace {

// Placements that are tried among the sets of one number of steps, the least travel first.
constexpr std::size_t kMostPlacements = 8;
// Fronts of a family are tried with 0, 1, 3, ... steps more than the shortest possible one.
constexpr std::int64_t kLongestDetour = 8;
// Cells times displacements of the largest flow that is worth its time.
constexpr std::int64_t kLargestFlow = 40'000;
// Cells times displacements of all placements that are tried in the families.
constexpr std::int64_t kMostPlacementWork = 100'000;
// Number of jumps along x that are searched.
constexpr std::size_t kMostJumps = 3;
// Cells times displacements of all flows with one jump.
constexpr std::int64_t kJumpWork = 60'000;

// Calls visit(travel) for every set with that many steps, near ones first, until visit returns
// false.
template <class Visit>
bool for_each_set(Dims splits, std::int64_t steps, Visit&& visit) {
  Travel travel{{0}};
  const auto extend = [&](const auto& self, std::int64_t left) -> bool {
    std::int32_t& last = travel.y_end.back();
    const bool may_end = travel.x_end() == 1 || left > 0;
    const auto most = static_cast<std::int32_t>(std::min(splits.y, left));
    if (may_end && left <= splits.y) {
      last = static_cast<std::int32_t>(left);
      if (!visit(std::as_const(travel))) return false;
    }
    if (travel.x_end() == splits.x) return true;
    for (std::int32_t y_end = most; y_end >= (travel.x_end() == 1 ? 1 : 0); --y_end) {
      if (left == y_end) continue;
      travel.y_end.back() = y_end;
      travel.y_end.push_back(0);
      const bool more = self(self, left - y_end);
      travel.y_end.pop_back();
      if (!more) return false;
    }
    return true;
  };
  return extend(extend, steps + 1);
}

class Search {
 public:
  Search(const Holdings& whole, const Figures& to_beat)
      : whole_(whole),
        splits_(whole.grid().splits),
        optimistic_(optimistic_model(whole)),
        likely_(likely_model(whole, optimistic_)) {
    result_.figures = to_beat;
  }

  FewestSteps run() {
    if (optimistic_.cells() > kExactCells)
      try_few_steps();
    else
      while (level_ <= result_.figures.steps && try_all_sets()) ++level_;
    try_families();
    TESSERA_ASSERT(result_.lower_bound <= result_.figures.steps);
    return std::move(result_);
  }

 private:
  struct Candidate {
    Travel travel;
    Routing routing;
  };

  // Tries all sets of level_ steps. Returns false if kMostFlowWork was reached.
  bool try_all_sets() {
    std::vector<Candidate> candidates;
    const bool all = for_each_set(splits_, level_, [&](const Travel& travel) {
      flow_work_ += optimistic_.cells() * (level_ + 1);
      if (flow_work_ > kMostFlowWork) return false;
      if (can_do(travel)) candidates.push_back({travel, route(optimistic_, travel)});
      return true;
    });
    if (all && candidates.empty() && result_.lower_bound == level_) ++result_.lower_bound;
    try_candidates(candidates);
    return all;
  }

  void try_candidates(std::vector<Candidate>& candidates) {
    const auto cost = [](const Candidate& c) {
      return std::pair(c.routing.travel, c.routing.moved);
    };
    std::stable_sort(candidates.begin(), candidates.end(),
                     [&](const auto& a, const auto& b) { return cost(a) < cost(b); });
    for (std::size_t i = 0; i < std::min(candidates.size(), kMostPlacements); ++i) {
      const Figures& best = result_.figures;
      if (best.steps == level_ && best.travel < candidates[i].routing.travel) return;
      attempt(candidates[i].travel);
    }
  }

  // Tries few sets, but those that most patterns want.
  void try_few_steps() {
    result_.lower_bound = least_steps(optimistic_);
    level_ = std::max<std::int64_t>(1, result_.lower_bound);
    if (result_.lower_bound == 0) attempt(Travel{});
    if (result_.lower_bound <= 1) try_single_steps();
    try_one_jump();
  }

  bool reached(std::int64_t steps) const { return result_.figures.steps <= steps; }

  static Travel with_jump(std::int64_t dx, std::int64_t y_end, std::int64_t y_end_of_jump) {
    Travel travel;
    travel.y_end.assign(static_cast<std::size_t>(dx) + 1, 0);
    travel.y_end.front() = static_cast<std::int32_t>(y_end);
    if (dx > 0) travel.y_end.back() = static_cast<std::int32_t>(y_end_of_jump);
    return travel;
  }

  void try_single_steps() {
    std::size_t tried = 0;
    for_each_single_step(likely_, [&](std::int64_t dx, std::int64_t dy, const Routing&) {
      attempt(with_jump(dx, 1 + dy, 1));
      return !reached(1) && ++tried < kMostPlacements;
    });
  }

  // Tries home and one x distance, with some y distances at both.
  void try_one_jump() {
    const std::vector<std::int64_t> jumps = even_jumps();
    if (jumps.empty()) return;
    std::int64_t work_left = kJumpWork / optimistic_.cells();
    for (std::int64_t steps = std::max<std::int64_t>(2, level_); !reached(steps); ++steps)
      for (const std::int64_t dx : jumps)
        for (std::int64_t y_end = 1; y_end <= steps && !reached(steps); ++y_end) {
          if ((work_left -= steps + 1) < 0 || !worth(steps)) return;
          if (std::max(y_end, steps + 1 - y_end) > splits_.y) continue;
          const Travel travel = with_jump(dx, y_end, steps + 1 - y_end);
          if (any_routing(likely_, travel).unplaced == 0) attempt(travel);
        }
  }

  // Returns the x distances that even out the x partitions by chains of jumps, with the fewest
  // moves.
  std::vector<std::int64_t> even_jumps() const {
    Transport columns{{1, splits_.x, 1, 1}, {}, {}, {}};
    for (auto [to, from] : {std::pair(&columns.blocks, &likely_.blocks),
                            std::pair(&columns.most_in_one, &likely_.most_in_one),
                            std::pair(&columns.capacity, &likely_.capacity)}) {
      to->resize(static_cast<std::size_t>(splits_.x));
      for (std::size_t cell = 0; cell < from->size(); ++cell)
        (*to)[cell / static_cast<std::size_t>(splits_.y)] += (*from)[cell];
    }
    std::vector<std::pair<std::int64_t, std::int64_t>> found;
    for_each_single_step(columns, [&](std::int64_t dx, std::int64_t, const Routing& routing) {
      found.emplace_back(routing.moved, dx);
      return true;
    });
    std::sort(found.begin(), found.end());
    found.resize(std::min(found.size(), kMostJumps));
    std::vector<std::int64_t> jumps;
    for (const auto& [moved, dx] : found) jumps.push_back(dx);
    return jumps;
  }

  bool can_do(const Travel& travel) const { return any_routing(optimistic_, travel).unplaced == 0; }

  // A family is a sequence of sets that grow by one displacement at a time: column by column, row
  // by row, or along jumps_.
  enum class Family { Columns, Rows, Jumps };
  struct Front {
    Family family = Family::Columns;
    std::int64_t steps = 0;
  };

  Travel travel_of_front(const Front& front) const {
    if (front.family != Family::Jumps)
      return first_displacements(splits_, front.steps,
                                 front.family == Family::Columns ? Axis::Y : Axis::X);
    Travel travel;
    const auto jumps = std::min(front.steps, static_cast<std::int64_t>(jumps_.size()));
    for (std::int64_t i = 0; i < jumps; ++i) {
      const auto dx = static_cast<std::size_t>(jumps_[static_cast<std::size_t>(i)]);
      travel.y_end.resize(std::max(travel.y_end.size(), dx + 1));
      travel.y_end[dx] = 1;
    }
    // After the last jump, all visited columns grow by one in turn.
    for (std::int64_t left = front.steps - jumps; left > 0;)
      for (std::int32_t& y_end : travel.y_end)
        if (y_end > 0 && y_end < splits_.y && left > 0) ++y_end, --left;
    return travel;
  }

  bool exists(const Front& front) const {
    return front.family != Family::Jumps ||
           front.steps < (static_cast<std::int64_t>(jumps_.size()) + 1) * splits_.y;
  }
  bool can_do(const Front& front) const { return exists(front) && can_do(travel_of_front(front)); }

  // Finds the x distances that would take most of the leftover blocks straight to free capacity,
  // best first.
  void find_jumps() {
    std::vector<std::int64_t> left, free;
    for (std::size_t cell = 0; cell < likely_.blocks.size(); ++cell) {
      const std::int64_t stay =
          std::min({likely_.blocks[cell], likely_.most_in_one[cell], likely_.capacity[cell]});
      left.push_back(likely_.blocks[cell] - stay);
      free.push_back(likely_.capacity[cell] - stay);
    }
    while (jumps_.size() < kMostJumps) {
      std::int64_t best = 0, most = 0;
      for (std::int64_t dx = 1; dx < splits_.x; ++dx)
        if (const std::int64_t taken = jump(dx, left, free, false); taken > most)
          best = dx, most = taken;
      if (most == 0) return;
      jump(best, left, free, true);
      jumps_.push_back(best);
    }
  }

  // Returns how many blocks of `left` fit into `free` at that distance; `take` removes them from
  // both.
  std::int64_t jump(std::int64_t dx, std::vector<std::int64_t>& left,
                    std::vector<std::int64_t>& free, bool take) const {
    std::int64_t sum = 0;
    for (std::int64_t cell = 0; cell < likely_.cells(); ++cell) {
      std::int64_t& from = left[static_cast<std::size_t>(cell)];
      if (from == 0) continue;
      std::int64_t& to = free[static_cast<std::size_t>(likely_.holder(cell, dx, 0))];
      const std::int64_t blocks = std::min(from, to);
      sum += blocks;
      if (take) from -= blocks, to -= blocks;
    }
    return sum;
  }

  // Returns the shortest possible fronts, shortest first, found by doubling and halving.
  std::vector<Front> shortest_fronts() const {
    std::vector<Front> fronts;
    for (std::int64_t too_few = level_ - 1, enough = level_; fronts.empty() && worth(enough);
         too_few = std::exchange(enough, 2 * enough))
      for (const Family family : {Family::Columns, Family::Rows, Family::Jumps})
        if (can_do(Front{family, enough})) fronts.push_back(shorten({family, enough}, too_few));
    std::stable_sort(fronts.begin(), fronts.end(),
                     [](const Front& a, const Front& b) { return a.steps < b.steps; });
    return fronts;
  }

  Front shorten(Front front, std::int64_t too_few) const {
    while (front.steps - too_few > 1) {
      const Front middle{front.family, (too_few + front.steps) / 2};
      (can_do(middle) ? front.steps : too_few) = middle.steps;
    }
    return front;
  }

  // Tries the shortest fronts, and longer ones if they cannot be placed.
  void try_families() {
    if (!worth(level_)) return;
    find_jumps();
    std::vector<Front> fronts = shortest_fronts();
    bool placed = false;
    std::int64_t work_left = kMostPlacementWork / optimistic_.cells();
    for (std::int64_t more = 1; !placed && more <= kLongestDetour; more *= 2)
      for (Front& front : fronts) {
        if (worth(front.steps) && exists(front) && (work_left -= front.steps + 1) > 0)
          placed = attempt(travel_of_front(front)) || placed;
        front.steps += more;
      }
  }

  bool worth(std::int64_t steps) const {
    return steps < result_.figures.steps && steps < splits_.x * splits_.y &&
           optimistic_.cells() * (steps + 1) <= kLargestFlow;
  }

  // Tries to place within a set, perhaps with some more displacements. Returns true if that
  // succeeds, and keeps the placement if it is better than the best one so far.
  bool attempt(const Travel& travel) {
    auto holdings = place_within(whole_, likely_, travel);
    if (!holdings) return false;
    const Figures figures = figures_of(*holdings);
    if (figures < result_.figures) {
      result_.figures = figures;
      result_.holdings = std::move(holdings);
    }
    return true;
  }

  const Holdings& whole_;
  Dims splits_;
  Transport optimistic_, likely_;
  FewestSteps result_;
  std::int64_t level_ = 0;  // steps of the sets that are searched now
  std::int64_t flow_work_ = 0;
  std::vector<std::int64_t> jumps_;  // x distances
};

}  // namespace

FewestSteps spill_in_fewest_steps(const Holdings& whole, const Figures& to_beat) {
  return Search(whole, to_beat).run();
}

}  // namespace tessera::partitioner::internal
