#include "tessera/planner/internal/overview.hpp"

#include <algorithm>
#include <tuple>

#include "tessera/planner/internal/nearest.hpp"

namespace tessera::planner::internal {
namespace {

bool better(const Found& a, const Found& b) {
  return b.c == nullptr || std::tie(a.cycles, a.temp) < std::tie(b.cycles, b.temp);
}

void keep_better(Found& best, const Found& other) {
  if (better(other, best)) best = other;
}

void keep_in_order(std::vector<Found>& front, const Found& found, std::size_t most) {
  const auto place = std::ranges::find_if(front, [&](const Found& f) { return better(found, f); });
  if (place == front.end() && front.size() == most) return;
  front.insert(place, found);
  if (front.size() > most) front.pop_back();
}

}  // namespace

Overview overview(const std::vector<Case>& cases, std::int64_t temp_bound, std::size_t front_size) {
  Overview o;
  for (const Case& c : cases) {
    Found best;
    survey(c, [&](const Sight& s) {
      ++o.partitions;
      const Found found{&c, s.parts, s.e.cycles, s.e.temp};
      const bool temp_fits = s.e.temp <= temp_bound, tile_holds = s.tile_holds();
      if (temp_fits && tile_holds) keep_better(o.without_words, found);
      if (!s.words_fit) return;
      keep_better(o.without_memory, found);
      if (!tile_holds) return;
      keep_better(o.without_temp_bound, found);
      if (!temp_fits) return;
      keep_better(best, found);
      keep_in_order(o.front, found, front_size);
    });
    o.of_case.push_back(best);
  }
  return o;
}

}  // namespace tessera::planner::internal
