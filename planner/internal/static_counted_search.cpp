#include "tessera/planner/internal/static_counted_search.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "tessera/base/int_math.hpp"
#include "tessera/codelets/cost/static_cycles.hpp"
#include "tessera/codelets/cost/vector_cycles.hpp"

namespace tessera::planner::internal {
namespace {

constexpr std::int64_t kMostOfWord = 65535;
constexpr std::array kRunKinds{RunKind::Even, RunKind::WholeRows, RunKind::LightRows,
                               RunKind::UncutRows};

std::optional<CountedCut> cut_in(const StaticCase& c, std::int64_t parts, std::int64_t bands,
                                 RunKind runs) {
  const std::int64_t grains = c.columns() / c.grain();
  if (parts < 1 || parts > grains || bands < 1 || bands > std::ssize(c.counts.columns)) return {};
  const std::int64_t share = ceil_div(grains, parts);
  const std::int64_t real_parts = ceil_div(grains, share), tiles = c.machine.tiles / real_parts;
  if (tiles < bands) return {};
  return CountedCut{share * c.grain(), real_parts, bands, tiles, runs};
}

// The work of the mean tile if the blocks are spread at random.
struct MeanTile {
  double blocks = 0, rows = 0, columns = 0, depth = 1;
};

MeanTile mean_tile(const StaticCase& c, const CountedCut& cut) {
  const double density = c.counts.density();
  const double height = double(c.counts.usual_rows), all = double(c.counts.usual_columns);
  const double width = all / double(cut.bands), tiles = double(cut.tiles);
  const double in_row = std::max(density * width, 1e-9);
  MeanTile tile{.blocks = std::max(1.0, double(c.counts.blocks) / tiles)};
  const bool whole = cut.runs != RunKind::Even;
  // A row of a band has no block with this probability; others are one entry each.
  const double used = 1 - std::pow(1 - density, width);
  const double rows_of_band = std::max(height * used, 1e-9);
  const double tiles_of_band = tiles / double(cut.bands);
  tile.rows = std::max(1.0, rows_of_band / tiles_of_band + (whole ? 0 : 1));
  if (tile.blocks < in_row) tile.rows = whole ? 1.0 : 1.5;
  if (cut.runs == RunKind::UncutRows) tile.blocks = std::max(tile.blocks, in_row);
  if (whole && tile.rows > 1) {
    tile.rows = std::ceil(tile.rows);
    tile.blocks = std::max(tile.blocks, tile.rows * in_row / used);
  }
  tile.columns = std::min(tile.blocks, width * (1 - std::pow(1 - density, tile.rows)));
  tile.depth = std::max(1.0, tiles * tile.rows / height);
  return tile;
}

// Returns the cycles of arranging and waiting; rows are not added.
std::int64_t fixed_cycles(const StaticCase& c, std::int64_t parts) {
  const Dims size = c.problem.size_in_blocks();
  const auto arrange = [&](std::int64_t rows) {
    return codelets::arrange_cycles(rows * c.columns() * c.data_bytes(), c.machine.tiles,
                                    c.machine.arrange_bytes_per_cycle)
        .value;
  };
  return arrange(size.x) + arrange(size.y) + counted_waiting(c, parts > 1, false);
}

// Returns about the cycles of a cut, to tell which cuts to count first.
double estimate(const StaticCase& c, const CountedCut& cut) {
  const MeanTile tile = mean_tile(c, cut);
  const codelets::StaticKernel kernel{c.problem.block, c.problem.data_type};
  const auto workers = double(c.machine.workers);
  const bool elements = c.problem.is_element_wise();
  const auto worker = codelets::static_worker_cycles(
      kernel, elements ? cut.share : ceil_div(cut.share, c.machine.workers));
  const auto linear = [&](const codelets::LinearCycles& cycles, double cut_by) {
    return double(cycles.start) +
           (tile.rows * double(cycles.per_row) + tile.blocks * double(cycles.per_nonzero)) / cut_by;
  };
  const auto bytes = double(c.data_bytes()), width = double(c.machine.exchange_bytes_per_cycle);
  const auto columns = double(cut.share);
  const double sums = tile.rows * double(c.problem.block.rows) * columns;
  const double own = sums / tile.depth;
  double cycles = double(fixed_cycles(c, cut.parts)) +
                  tile.columns * double(c.problem.block.cols) * columns * bytes / width +
                  linear(codelets::static_supervisor_cycles(kernel), 1) +
                  workers * linear(worker, elements ? workers : 1);
  if (cut.parts > 1) cycles += tile.blocks * double(c.problem.block.area()) * bytes / width;
  if (tile.depth <= 1.01) return cycles;
  const auto reduce =
      codelets::reduce_cycles(std::int64_t(std::ceil(own)), std::int64_t(std::ceil(tile.depth)),
                              c.problem.data_type, c.problem.data_type, c.machine.workers);
  return cycles + (sums - own) * bytes / width + double(reduce.value) +
         double(counted_waiting(c, false, true) - counted_waiting(c, false, false));
}

// Returns cycles that no layout of the cut falls below: fixed steps, the kernel and the values of
// the tile with the most blocks, which has the mean number at least.
std::int64_t least_cycles(const StaticCase& c, const CountedCut& cut) {
  const codelets::StaticKernel kernel{c.problem.block, c.problem.data_type};
  const std::int64_t blocks = ceil_div(c.counts.blocks, cut.tiles);
  const std::int64_t workers = c.machine.workers;
  const std::int64_t values = cut.parts == 1
                                  ? 0
                                  : ceil_div(blocks * c.problem.block.area() * c.data_bytes(),
                                             c.machine.exchange_bytes_per_cycle);
  std::int64_t multiply = 0;
  if (c.problem.is_element_wise()) {
    // Few rows are cut across the batch, and then half of the workers share the elements.
    const auto whole =
        codelets::static_worker_cycles(kernel, cut.share)(1, ceil_div(blocks, workers));
    const auto half = codelets::static_worker_cycles(
        kernel, round_up(ceil_div(cut.share, 2), c.grain()))(1, ceil_div(2 * blocks, workers));
    multiply = workers * std::min(whole, half).value;
  } else {
    multiply =
        codelets::static_supervisor_cycles(kernel)(1, blocks).value +
        workers *
            codelets::static_worker_cycles(kernel, ceil_div(cut.share, workers))(1, blocks).value;
  }
  return fixed_cycles(c, cut.parts) + values + multiply;
}

StaticRuns runs_of(const BandedRows& rows, const CountedCut& cut) {
  constexpr double kLightRow = 0.5;  // in blocks
  switch (cut.runs) {
    case RunKind::Even:
      return even_runs(rows, cut.tiles);
    case RunKind::WholeRows:
      return whole_row_runs(rows, cut.tiles, {});
    case RunKind::LightRows:
      return whole_row_runs(rows, cut.tiles, {.row_weight = kLightRow});
    case RunKind::UncutRows:
      return whole_row_runs(rows, cut.tiles, {.cut_long = false});
  }
  return {};
}

// Returns 1, 2, 3 and so on with growing steps, up to `most`.
std::vector<std::int64_t> growing(std::int64_t most) {
  std::vector<std::int64_t> values;
  constexpr std::int64_t kStepShare = 6;  // a step is a sixth of the value
  for (std::int64_t value = 1; value <= most;
       value += std::max<std::int64_t>(1, value / kStepShare))
    values.push_back(value);
  return values;
}

// Counts cuts and keeps the best.
class CutCounter {
 public:
  CutCounter(const StaticCase& c, const BlockPattern& pattern, const StaticLimits& limits)
      : c_(c), pattern_(pattern), limits_(limits) {
    constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
    result_.obstacle = {kNone, kNone};
  }

  // Counts the cut unless it was counted, or cannot be better than the best.
  void try_cut(const CountedCut& cut) {
    if (!seen_.insert(cut).second) return;
    if (result_.best && least_cycles(c_, cut) >= result_.cost.cycles.value) return;
    const BandedRows& rows = banded(cut.bands);
    const StaticRuns runs = runs_of(rows, cut);
    if (runs.empty()) return;
    ++result_.counted;
    const StaticLoad load = deal_runs(pattern_, rows, runs);
    consider(cut, cost_of_load(c_, load, cut.share, cut.parts == 1));
  }

  const CountedSearch& result() const { return result_; }

 private:
  void consider(const CountedCut& cut, const CountedCost& counted) {
    StaticObstacle& obstacle = result_.obstacle;
    obstacle.least_word = std::min(obstacle.least_word, std::max(counted.words, counted.offset));
    if (!fits_words(counted)) return;
    PlanCost cost = plan_cost_of(c_, counted);
    const std::int64_t bytes = (cost.temp + cost.resident).value;
    obstacle.least_bytes = std::min(obstacle.least_bytes, bytes);
    if (cost.temp.value > limits_.temp || bytes > limits_.bytes) return;
    const bool is_better = !result_.best || cost.cycles < result_.cost.cycles ||
                           (cost.cycles == result_.cost.cycles && cost.temp < result_.cost.temp);
    if (!is_better) return;
    result_.best = cut;
    result_.cost = std::move(cost);
  }

  const BandedRows& banded(std::int64_t bands) {
    const auto [it, is_new] = banded_.try_emplace(bands);
    if (is_new) it->second = banded_rows(pattern_, bands_of(c_.counts, bands));
    return it->second;
  }

  const StaticCase& c_;
  const BlockPattern& pattern_;
  const StaticLimits& limits_;
  CountedSearch result_;
  std::set<CountedCut> seen_;
  std::map<std::int64_t, BandedRows> banded_;
};

// Returns the cuts of a coarse grid, the most promising first.
std::vector<CountedCut> promising_cuts(const StaticCase& c) {
  std::vector<std::pair<double, CountedCut>> cuts;
  const std::int64_t grains = c.columns() / c.grain();
  for (const std::int64_t parts : growing(std::min(grains, c.machine.tiles)))
    for (const std::int64_t bands : growing(std::ssize(c.counts.columns)))
      for (const RunKind runs : {RunKind::Even, RunKind::LightRows, RunKind::UncutRows})
        if (const auto cut = cut_in(c, parts, bands, runs))
          cuts.emplace_back(estimate(c, *cut), *cut);
  std::ranges::sort(cuts);
  std::vector<CountedCut> result;
  for (const auto& [cycles, cut] : cuts) result.push_back(cut);
  return result;
}

// Returns the numbers of tiles to try beside one: rows on fewer tiles are added by fewer.
std::vector<std::int64_t> fewer_tiles(std::int64_t tiles) {
  return {tiles, tiles - 1, tiles - tiles / 8, tiles - tiles / 4, tiles / 2};
}

void try_neighbours(const StaticCase& c, const CountedCut& at, CutCounter& counter) {
  for (const std::int64_t parts : {at.parts, at.parts - 1, at.parts + 1})
    for (const std::int64_t bands : {at.bands, at.bands - 1, at.bands + 1})
      for (const RunKind runs : kRunKinds)
        if (const auto cut = cut_in(c, parts, bands, runs)) counter.try_cut(*cut);
  for (const std::int64_t tiles : fewer_tiles(at.tiles))
    for (const RunKind runs : kRunKinds) {
      CountedCut cut = at;
      cut.tiles = tiles;
      cut.runs = runs;
      if (tiles >= at.bands) counter.try_cut(cut);
    }
}

// Tries the neighbours of the best cut until none is better.
void improve(const StaticCase& c, CutCounter& counter) {
  for (std::optional<CountedCut> at; at != counter.result().best;) {
    at = counter.result().best;
    try_neighbours(c, *at, counter);
  }
}

}  // namespace

bool fits_words(const CountedCost& cost) {
  return cost.words <= kMostOfWord && cost.offset <= kMostOfWord;
}

CountedSearch search_by_counts(const StaticCase& c, const BlockPattern& pattern,
                               const StaticLimits& limits) {
  // Blocks and tiles that are looked at, so that a pattern of a million elements takes about a
  // quarter of a second and a small one less than a twentieth.
  constexpr std::int64_t kLooks = std::int64_t{1} << 25, kLooksOfTile = 192;
  constexpr std::int64_t kFewest = 24, kMost = 640;
  const std::int64_t looks =
      c.counts.blocks + kLooksOfTile * std::min(c.machine.tiles, c.counts.blocks);
  const std::int64_t most = std::clamp(kLooks / looks, kFewest, kMost);
  CutCounter counter(c, pattern, limits);
  const std::vector<CountedCut> cuts = promising_cuts(c);
  for (const CountedCut& cut : cuts) {
    if (counter.result().counted >= most && counter.result().best) break;
    counter.try_cut(cut);
  }
  if (counter.result().best) improve(c, counter);
  return counter.result();
}

StaticPlan plan_of(const StaticCase& c, const BlockPattern& pattern, const CountedCut& cut,
                   PlanCost cost) {
  const BandedRows rows = banded_rows(pattern, bands_of(c.counts, cut.bands));
  StaticPlan plan{.data_type = c.problem.data_type,
                  .z_parts = cut.parts,
                  .bands = rows.bands.begin,
                  .parts = {},
                  .layouts = {{}},
                  .cost = std::move(cost)};
  StaticLayout& layout = plan.layouts.front();
  layout.tiles = deal_runs(pattern, rows, runs_of(rows, cut), &layout.tile_of).tiles;
  for (std::int64_t begin = 0, tile = 0; begin < c.columns(); begin += cut.share) {
    plan.parts.push_back({begin, std::min(begin + cut.share, c.columns()), tile, 0});
    tile += std::ssize(layout.tiles);
  }
  return plan;
}

}  // namespace tessera::planner::internal
