#include "tessera/bench/static/small.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "tessera/base/random.hpp"
#include "tessera/bench/static/cells.hpp"
#include "tessera/planner/static_plan.hpp"

namespace tessera::bench {
namespace {

constexpr std::int32_t kTiles = 4;

// Calls `visit()` for every assignment; the numbers of tiles do not matter, so a block is on a tile
// that has blocks or on the next one.
void for_each_assignment(std::vector<std::int32_t>& tile_of, std::size_t placed, std::int32_t used,
                         const std::function<void()>& visit) {
  if (placed == tile_of.size()) return visit();
  for (std::int32_t tile = 0; tile < std::min(used + 1, kTiles); ++tile) {
    tile_of[placed] = tile;
    for_each_assignment(tile_of, placed + 1, std::max(used, tile + 1), visit);
  }
}

std::int64_t least_cycles(const planner::StaticPlan& plan, const sparse::Csr<float>& m,
                          std::int64_t batch, const device::Machine& machine) {
  planner::StaticPlan trial = plan;
  trial.layouts[0].tiles.assign(kTiles, {});
  std::int64_t least = plan.cost.cycles.value;
  for_each_assignment(trial.layouts[0].tile_of, 0, 0, [&] {
    const auto cost =
        planner::count_static_cost(trial, half_problem(m, batch), view_of(m), machine);
    least = std::min(least, cost.cycles.value);
  });
  return least;
}

sparse::Csr<float> small_pattern(Random& random) {
  constexpr std::int64_t kSide = 8;
  const std::int64_t rows = 1 + random.below(5), cols = 1 + random.below(5);
  sparse::Csr<float> m;
  m.rows = rows * kSide;
  m.cols = cols * kSide;
  m.block = {kSide, kSide};
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < cols; ++c)
      if (random.unit() < 0.5) m.col.push_back(std::int32_t(c));
    m.row_begin.push_back(m.blocks());
  }
  return m;
}

}  // namespace

void small_plan_bars(Report& report) {
  constexpr int kPatterns = 60;
  constexpr std::int64_t kMostBlocks = 8, kBatch = 4;
  device::Machine machine = device::machine_preset("bow");
  machine.tiles = kTiles;
  Random random(31);
  double optimal = 0, largest = 1;
  for (int patterns = 0; patterns < kPatterns;) {
    const auto m = small_pattern(random);
    if (m.blocks() == 0 || m.blocks() > kMostBlocks) continue;
    ++patterns;
    const auto plan = planner::plan_static(half_problem(m, kBatch), view_of(m), machine).plan;
    const auto least = double(least_cycles(plan.value(), m, kBatch, machine));
    const double ratio = double(plan->cost.cycles.value) / least;
    optimal += ratio == 1;
    largest = std::max(largest, ratio);
  }
  report.at_least("plans of 60 small patterns that no assignment to 4 tiles undercuts", optimal,
                  48);
  report.at_most("  cycles by those of the best assignment, largest", largest, 1.05);
}

}  // namespace tessera::bench
