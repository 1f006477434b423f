#include "tessera/partitioner/internal/place_within.hpp"

#include <algorithm>

#include "tessera/partitioner/internal/one_step.hpp"
#include "tessera/partitioner/internal/place.hpp"

namespace tessera::partitioner::internal {
namespace {

// Number of attempts: a routing is made again if buckets turn out to hold less than the model said.
constexpr int kRounds = 4;
// The limit of (cells that send * cells * displacements) up to which shortest paths are searched.
constexpr std::int64_t kCheapestWork = 200'000;

// Takes away a quarter more than was missing: the blocks that come instead have another shape too,
// and rounds are expensive.
void correct(std::int64_t unmet, std::int64_t& capacity) {
  if (unmet > 0) capacity = std::max<std::int64_t>(0, capacity - unmet - unmet / 4 - 1);
}

}  // namespace

std::int64_t senders(const Transport& transport) {
  std::int64_t count = 0;
  for (std::size_t cell = 0; cell < transport.blocks.size(); ++cell)
    count +=
        transport.blocks[cell] > std::min(transport.most_in_one[cell], transport.capacity[cell]);
  return count;
}

Routing route(const Transport& transport, const Travel& travel) {
  if (travel.steps() == 1) {
    const std::int64_t dx = travel.x_end() - 1;
    return one_step_routing(transport, dx, dx == 0 ? 1 : 0);
  }
  const std::int64_t lanes = transport.cells() * (travel.steps() + 1);
  const bool cheap = senders(transport) * lanes <= kCheapestWork;
  return cheap ? cheapest_routing(transport, travel) : any_routing(transport, travel);
}

std::optional<Holdings> place_within(const Holdings& whole, const Transport& model,
                                     const Travel& travel) {
  Transport corrected = model;
  for (int round = 0; round < kRounds; ++round) {
    const Routing routing = route(corrected, travel);
    if (routing.unplaced > 0) return std::nullopt;
    Holdings holdings = whole;
    const Placed placed = place(holdings, travel, routing, round + 1 == kRounds);
    if (placed.complete) return holdings;
    for (std::size_t cell = 0; cell < placed.unmet.size(); ++cell)
      correct(placed.unmet[cell], corrected.capacity[cell]);
  }
  return std::nullopt;
}

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

}  // namespace tessera::partitioner::internal
