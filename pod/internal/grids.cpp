#include "tessera/pod/internal/grids.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

namespace tessera::pod::internal {
namespace {

// Every count of parts is tried on a level with at most so many devices.
constexpr std::int64_t kEveryCount = 64;

auto key_of(const Dims& d) { return std::tuple(d.g, d.x, d.y, d.z); }

bool obeys(const GridPins& pins, const Dims& parts) {
  const auto is = [](const std::optional<std::int64_t>& pin, std::int64_t count) {
    return !pin || *pin == count;
  };
  return is(pins.g, parts.g) && is(pins.x, parts.x) && is(pins.y, parts.y) && is(pins.z, parts.z);
}

// The most parts that a dimension can have in a grid that obeys the pins.
Dims most_parts(const Problem& problem, const GridPins& pins) {
  const Dims& size = problem.size;
  return {pins.g.value_or(size.g), pins.x.value_or(ceil_div(size.x, problem.block.rows)),
          pins.y.value_or(ceil_div(size.y, problem.block.cols)), pins.z.value_or(size.z)};
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
  const Dims most = most_parts(problem, pins);
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
    if (suits(problem, family.parts) && obeys(pins, family.parts))
      result.push_back(std::move(family));
  return result;
}

CheapestLayout cheapest_layout(LevelPrices& prices, const Problem& problem,
                               const GridFamily& family, std::int64_t serial_parts) {
  const device::Pod& pod = prices.pod();
  const Dims share = largest_share(problem, family.parts, serial_parts);
  std::vector<PlannedCollective> needs;
  const std::vector<Pass> passes = passes_of(problem);
  for (const Pass pass : passes)
    for (const PlannedCollective& need : collectives_of(problem, pass, family.parts, serial_parts,
                                                        share, expected_nonzeros(problem, share)))
      needs.push_back(need);
  CheapestLayout best{{}, std::numeric_limits<double>::infinity()};
  for (const PodGrid& layout : family.layouts) {
    PodGrid grid = layout;
    double seconds = barrier_seconds(pod, grid) * double(passes.size());
    // The order on one level changes the prices of that level only.
    for (std::size_t l = 0; l < grid.levels.size(); ++l) {
      LevelCut best_cut = grid.levels[l];
      double least = std::numeric_limits<double>::infinity();
      for (const auto& order : orders(pod.levels[l], grid.levels[l].parts)) {
        const LevelCut cut{grid.levels[l].parts, order};
        double sum = 0;
        for (const PlannedCollective& need : needs) {
          if (along(cut.parts, need.axis) == 1) continue;
          const double part = part_bytes(grid, l, need, problem.data_type);
          const collectives::LevelCost& cost = prices.cheapest(l, cut, need.axis, part);
          const std::int64_t runs = need.when == When::Once ? 1 : serial_parts;
          sum += prices.seconds(l, cost, need.operation, part) * double(runs);
        }
        if (sum < least) {
          least = sum;
          best_cut = cut;
        }
      }
      grid.levels[l] = best_cut;
      seconds += least;
    }
    if (seconds < best.seconds) best = {std::move(grid), seconds};
  }
  return best;
}

}  // namespace tessera::pod::internal
