#include "tessera/partitioner/internal/spill_steps.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/partitioner/internal/place.hpp"
#include "tessera/partitioner/internal/transport.hpp"
#include "tessera/partitioner/internal/transport_model.hpp"

namespace tessera::partitioner::internal {
namespace {

// Times a routing is made anew after buckets turned out to hold less than the model said.
constexpr int kRounds = 4;
// Placements tried among the sets of one number of steps, the least travel first.
constexpr std::size_t kMostPlacements = 8;
// Cells that send, times cells, times displacements, up to which shortest paths are looked for.
constexpr std::int64_t kCheapestWork = 200'000;
// Fronts of a family are tried when 0, 1, 3, ... steps longer than the shortest that can do.
constexpr std::int64_t kLongestDetour = 8;
// Cells times displacements of the largest flow that is worth its time.
constexpr std::int64_t kLargestFlow = 100'000;

// Calls visit(travel) for every set with that many steps until it returns false; near ones first.
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

// The first `steps` + 1 displacements, column after column or row after row.
Travel first_displacements(Dims splits, std::int64_t steps, Axis first) {
  const std::int64_t count = steps + 1;
  Travel travel{{}};
  const std::int64_t columns =
      first == Axis::Y ? ceil_div(count, splits.y) : std::min(splits.x, count);
  for (std::int64_t dx = 0; dx < columns; ++dx)
    travel.y_end.push_back(
        static_cast<std::int32_t>(first == Axis::Y ? std::min(splits.y, count - dx * splits.y)
                                                   : count / splits.x + (dx < count % splits.x)));
  return travel;
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
      try_home();
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

  // All sets of level_ steps. False when kMostFlowWork was reached.
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

  void try_home() {
    level_ = 1;
    if (senders(optimistic_) > 0)
      result_.lower_bound = 1;
    else
      attempt(Travel{});
  }

  bool can_do(const Travel& travel) const { return any_routing(optimistic_, travel).unplaced == 0; }

  // A family's first displacements.
  struct Front {
    Axis first = Axis::Y;
    std::int64_t steps = 0;
    auto operator<=>(const Front& o) const { return steps <=> o.steps; }
  };

  // The shortest fronts that can do, shortest first, found by doubling and halving.
  std::vector<Front> shortest_fronts() const {
    std::vector<Front> fronts;
    for (std::int64_t too_few = level_ - 1, enough = level_; fronts.empty() && worth(enough);
         too_few = std::exchange(enough, 2 * enough))
      for (const Axis first : {Axis::Y, Axis::X})
        if (can_do(first_displacements(splits_, enough, first)))
          fronts.push_back(shorten({first, enough}, too_few));
    std::stable_sort(fronts.begin(), fronts.end());
    return fronts;
  }

  Front shorten(Front front, std::int64_t too_few) const {
    while (front.steps - too_few > 1) {
      const std::int64_t middle = (too_few + front.steps) / 2;
      const bool can = can_do(first_displacements(splits_, middle, front.first));
      (can ? front.steps : too_few) = middle;
    }
    return front;
  }

  // Longer fronts are tried where the shortest one cannot be placed.
  void try_families() {
    std::vector<Front> fronts = shortest_fronts();
    bool placed = false;
    for (std::int64_t more = 1; !placed && more <= kLongestDetour; more *= 2)
      for (Front& front : fronts) {
        if (worth(front.steps))
          placed = attempt(first_displacements(splits_, front.steps, front.first)) || placed;
        front.steps += more;
      }
  }

  bool worth(std::int64_t steps) const {
    return steps < result_.figures.steps && steps < splits_.x * splits_.y &&
           optimistic_.cells() * (steps + 1) <= kLargestFlow;
  }

  static std::int64_t senders(const Transport& transport) {
    std::int64_t count = 0;
    for (std::size_t cell = 0; cell < transport.blocks.size(); ++cell)
      count +=
          transport.blocks[cell] > std::min(transport.most_in_one[cell], transport.capacity[cell]);
    return count;
  }

  Routing route(const Transport& transport, const Travel& travel) const {
    const std::int64_t lanes = transport.cells() * (travel.steps() + 1);
    const bool cheap = senders(transport) * lanes <= kCheapestWork;
    return cheap ? cheapest_routing(transport, travel) : any_routing(transport, travel);
  }

  // True when the set could be placed; kept when better than what is there.
  bool attempt(const Travel& travel) {
    Transport model = likely_;
    for (int round = 0; round < kRounds; ++round) {
      const Routing routing = route(model, travel);
      if (routing.unplaced > 0) return false;
      Holdings holdings = whole_;
      const Placed placed = place(holdings, travel, routing);
      if (placed.complete) {
        const Figures figures = figures_of(holdings);
        if (figures < result_.figures) {
          result_.figures = figures;
          result_.holdings = std::move(holdings);
        }
        return true;
      }
      for (std::size_t cell = 0; cell < model.capacity.size(); ++cell)
        model.capacity[cell] = std::max<std::int64_t>(0, model.capacity[cell] - placed.unmet[cell]);
    }
    return false;
  }

  const Holdings& whole_;
  Dims splits_;
  Transport optimistic_, likely_;
  FewestSteps result_;
  std::int64_t level_ = 0;  // steps of the sets that are searched
  std::int64_t flow_work_ = 0;
};

}  // namespace

FewestSteps spill_in_fewest_steps(const Holdings& whole, const Figures& to_beat) {
  return Search(whole, to_beat).run();
}

}  // namespace tessera::partitioner::internal
