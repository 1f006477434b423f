#include "tessera/pod/internal/grids.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <tuple>

namespace tessera::pod::internal {
namespace {

// Every count of parts is tried on a level with at most so many devices.
constexpr std::int64_t kEveryCount = 64;

constexpr double kNever = std::numeric_limits<double>::infinity();

auto key_of(const Dims& d) { return std::tuple(d.g, d.x, d.y, d.z); }

// Returns the parts that are pinned, and `others` where none are.
Dims pinned_or(const GridPins& pins, const Dims& others) {
  return {pins.g.value_or(others.g), pins.x.value_or(others.x), pins.y.value_or(others.y),
          pins.z.value_or(others.z)};
}

bool within(const Dims& parts, const Dims& most) {
  return parts.g <= most.g && parts.x <= most.x && parts.y <= most.y && parts.z <= most.z;
}

// Returns the orders of axes along a level that differ in cost: those of the axes that are cut,
// where neighbours share links.
std::vector<std::array<Axis, 3>> orders(const device::PodLevel& level, const Dims& parts) {
  std::array<Axis, 3> order = {Axis::X, Axis::Y, Axis::Z};
  const int cut = (parts.x > 1) + (parts.y > 1) + (parts.z > 1);
  if (cut < 2 || level.kind != device::LevelKind::Ring) return {order};
  std::vector<std::array<Axis, 3>> all;
  do {
    // Axes that are not cut stay behind the others, in their order.
    bool is_canonical = true;
    for (std::size_t i = 0; i + 1 < order.size(); ++i)
      is_canonical &= along(parts, order[i]) > 1 || along(parts, order[i + 1]) == 1;
    if (is_canonical) all.push_back(order);
  } while (std::ranges::next_permutation(order).found);
  return all;
}

// Gives a level of a grid the order with the least price(grid, level), and returns that. The order
// on one level changes the prices of that level only.
template <class Price>
double take_cheapest_order(const device::PodLevel& links, std::size_t level, const Price& price,
                           PodGrid& grid) {
  double least = kNever;
  LevelCut cheapest = grid.levels[level];
  for (const auto& order : orders(links, cheapest.parts)) {
    grid.levels[level].order = order;
    const double sum = price(grid, level);
    if (sum < least) cheapest = grid.levels[level];
    least = std::min(least, sum);
  }
  grid.levels[level] = cheapest;
  return least;
}

// Returns the parts of one level of a pod that are tried, in ascending order of g, x, y, z: all
// whose product is at most the devices of the level, or, on a level with more than 64 devices,
// those whose product divides it.
std::vector<Dims> level_parts(const device::PodLevel& level) {
  const std::int64_t n = level.devices;
  const bool divisors_only = n > kEveryCount;
  std::vector<Dims> all;
  for (std::int64_t g = 1; g <= n; ++g)
    for (std::int64_t x = 1; g * x <= n; ++x)
      for (std::int64_t y = 1; g * x * y <= n; ++y)
        for (std::int64_t z = 1; g * x * y * z <= n; ++z)
          if (!divisors_only || n % (g * x * y * z) == 0) all.push_back({g, x, y, z});
  return all;
}

}  // namespace

std::vector<GridFamily> grid_families(const Problem& problem, const device::Pod& pod,
                                      const GridPins& pins) {
  const Dims least = pinned_or(pins, {}), most = pinned_or(pins, blocks_of(problem));
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>, GridFamily> families;
  families[key_of({})] = {{}, {PodGrid{}}};
  for (const device::PodLevel& level : pod.levels) {
    std::vector<Dims> choices = level_parts(level);
    std::erase_if(choices, [&](const Dims& parts) { return !within(parts, most); });
    decltype(families) wider;
    for (const auto& [ignored, family] : families)
      for (const Dims& parts : choices) {
        const Dims all = family.parts * parts;
        if (!within(all, most)) continue;
        GridFamily& next = wider[key_of(all)];
        next.parts = all;
        for (const PodGrid& inner : family.layouts) {
          PodGrid grid = inner;
          grid.levels.push_back({parts});
          next.layouts.push_back(std::move(grid));
        }
      }
    families = std::move(wider);
  }
  std::vector<GridFamily> result;
  for (auto& [ignored, family] : families)
    if (suits(problem, family.parts) && within(least, family.parts))
      result.push_back(std::move(family));
  return result;
}

CheapestLayout cheapest_layout(LevelPrices& prices, const Problem& problem,
                               const GridFamily& family, std::int64_t serial_parts) {
  std::vector<PlannedCollective> needs;
  const std::vector<Pass> passes = passes_of(problem);
  for (const Pass pass : passes)
    std::ranges::move(collectives_of(problem, pass, family.parts, serial_parts),
                      std::back_inserter(needs));
  const auto price = [&](const PodGrid& grid, std::size_t level) {
    double sum = 0;
    for (const PlannedCollective& need : needs) {
      if (along(grid.levels[level].parts, need.axis) == 1) continue;
      const std::int64_t runs = need.when == When::Once ? 1 : serial_parts;
      sum += prices.least(grid, level, need, problem.data_type).seconds * double(runs);
    }
    return sum;
  };
  CheapestLayout best{{}, kNever};
  for (const PodGrid& layout : family.layouts) {
    CheapestLayout own{layout, barrier_seconds(prices.pod(), layout) * double(passes.size())};
    for (std::size_t l = 0; l < layout.levels.size(); ++l)
      own.seconds += take_cheapest_order(prices.pod().levels[l], l, price, own.grid);
    if (own.seconds < best.seconds) best = std::move(own);
  }
  return best;
}

}  // namespace tessera::pod::internal
