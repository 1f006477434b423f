#include "tessera/planner/internal/static_counted_search.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "tessera/base/int_math.hpp"
#include "tessera/codelets/cost/static_split.hpp"
#include "tessera/codelets/cost/vector_cycles.hpp"

namespace tessera::planner::internal {
namespace {

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

// Returns the same tile with rows and columns exchanged.
MeanTile transposed(const StaticCase& c, const CountedCut& cut, MeanTile tile) {
  std::swap(tile.rows, tile.columns);
  tile.depth = std::max(1.0, double(cut.tiles) * tile.rows / double(c.counts.usual_columns));
  return tile;
}

// Returns the cycles of arranging and waiting in a pass; results are not added.
std::int64_t fixed_cycles(const StaticCase& c, Pass pass, std::int64_t parts) {
  const Dims size = c.problem.size_in_blocks();
  const auto arrange = [&](std::int64_t rows) {
    return codelets::arrange_cycles(rows * c.columns() * c.data_bytes(), c.machine.tiles,
                                    c.machine.arrange_bytes_per_cycle)
        .value;
  };
  const bool values_travel = parts > 1 && pass != Pass::GradW;
  return arrange(size.x) + arrange(size.y) + counted_waiting(c, pass, values_travel, false);
}

// Returns about the cycles of adding `operands` sums to `own` results, if there are several for
// each.
double sums_estimate(const StaticCase& c, double own, double depth) {
  if (depth <= 1.01) return 0;
  const auto reduce =
      codelets::reduce_cycles(std::int64_t(std::ceil(own)), std::int64_t(std::ceil(depth)),
                              c.problem.data_type, c.problem.data_type, c.machine.workers);
  const double bytes = own * (depth - 1) * double(c.data_bytes());
  return bytes / double(c.machine.exchange_bytes_per_cycle) + double(reduce.value) +
         double(counted_waiting(c, Pass::Fwd, false, true) -
                counted_waiting(c, Pass::Fwd, false, false));
}

// Returns about the cycles of Fwd, or of GradA with the transposed tile.
double product_estimate(const StaticCase& c, const CountedCut& cut, const MeanTile& tile,
                        Pass pass) {
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
  double cycles = double(fixed_cycles(c, pass, cut.parts)) +
                  tile.columns * double(c.problem.block.cols) * columns * bytes / width +
                  linear(codelets::static_supervisor_cycles(kernel), 1) +
                  workers * linear(worker, elements ? workers : 1);
  if (cut.parts > 1) cycles += tile.blocks * double(c.problem.block.area()) * bytes / width;
  return cycles + sums_estimate(c, sums / tile.depth, tile.depth);
}

// Returns about the cycles of GradW.
double gradient_estimate(const StaticCase& c, const CountedCut& cut, const MeanTile& tile) {
  const codelets::StaticKernel kernel{c.problem.block, c.problem.data_type};
  const auto blocks = std::int64_t(std::ceil(tile.blocks / std::ceil(tile.rows)));
  const Cycles multiply = codelets::static_gradient_cycles(
      kernel, cut.share, c.machine.workers, [&](const auto& visit) {
        for (double row = 0; row < tile.rows; ++row) visit(blocks);
      });
  const double rows =
      tile.rows * double(c.problem.block.rows) + tile.columns * double(c.problem.block.cols);
  const double bytes = rows * double(cut.share) * double(c.data_bytes());
  const auto parts = double(cut.parts);
  return double(fixed_cycles(c, Pass::GradW, cut.parts)) + double(multiply.value) +
         bytes / double(c.machine.exchange_bytes_per_cycle) +
         sums_estimate(c, tile.blocks * double(c.problem.block.area()) / parts, parts);
}

// Returns about the cycles of a cut, to tell which cuts to count first.
double estimate(const StaticCase& c, const CountedCut& cut) {
  const MeanTile tile = mean_tile(c, cut);
  double cycles = product_estimate(c, cut, tile, Pass::Fwd);
  if (c.problem.grad_a) cycles += product_estimate(c, cut, transposed(c, cut, tile), Pass::GradA);
  if (c.problem.grad_w) cycles += gradient_estimate(c, cut, tile);
  return cycles;
}

// Returns cycles that a product falls below with no layout of the cut: the kernel and the values of
// the tile with the most blocks, which has the mean number at least.
std::int64_t least_product(const StaticCase& c, const CountedCut& cut) {
  const codelets::StaticKernel kernel{c.problem.block, c.problem.data_type};
  const std::int64_t blocks = ceil_div(c.counts.blocks, cut.tiles);
  const std::int64_t workers = c.machine.workers;
  const std::int64_t values = cut.parts == 1
                                  ? 0
                                  : ceil_div(blocks * c.problem.block.area() * c.data_bytes(),
                                             c.machine.exchange_bytes_per_cycle);
  if (!c.problem.is_element_wise())
    return values + codelets::static_supervisor_cycles(kernel)(1, blocks).value +
           workers * codelets::static_worker_cycles(kernel, ceil_div(cut.share, workers))(1, blocks)
                         .value;
  // Few rows are cut across the batch, and then half of the workers share the elements.
  const auto whole =
      codelets::static_worker_cycles(kernel, cut.share)(1, ceil_div(blocks, workers));
  const auto half = codelets::static_worker_cycles(
      kernel, round_up(ceil_div(cut.share, 2), c.grain()))(1, ceil_div(2 * blocks, workers));
  return values + workers * std::min(whole, half).value;
}

// Returns cycles that no layout of the cut falls below in all passes together.
std::int64_t least_cycles(const StaticCase& c, const CountedCut& cut) {
  const std::int64_t product = least_product(c, cut);
  std::int64_t cycles = fixed_cycles(c, Pass::Fwd, cut.parts) + product;
  if (c.problem.grad_a) cycles += fixed_cycles(c, Pass::GradA, cut.parts) + product;
  if (c.problem.grad_w) cycles += fixed_cycles(c, Pass::GradW, cut.parts);
  return cycles;
}

// Returns 1, 2, 3 and so on with growing steps, up to `most`, or the one that is asked for.
std::vector<std::int64_t> growing(std::int64_t most, std::optional<std::int64_t> pinned) {
  if (pinned) return {*pinned};
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
  CutCounter(const StaticCase& c, CutCounts& counts, const StaticLimits& limits)
      : c_(c), counts_(counts), limits_(limits) {
    constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
    result_.obstacle = {kNone, kNone};
  }

  // Counts the cut unless it was counted, or cannot be better than the best.
  void try_cut(const CountedCut& cut) {
    if (!limits_.allow(cut.parts, cut.bands) || !seen_.insert(cut).second) return;
    if (result_.best && least_cycles(c_, cut) >= result_.cost.cycles.value) return;
    const CutLoads* loads = counts_.loads({cut.bands, cut.tiles, cut.runs}, c_.problem.grad_a);
    if (loads == nullptr) return;
    ++result_.counted;
    consider(cut, counted_cut(c_, *loads, cut.share, cut.parts));
  }

  const CountedSearch& result() const { return result_; }

 private:
  void consider(const CountedCut& cut, const CountedPasses& counted) {
    StaticObstacle& obstacle = result_.obstacle;
    obstacle.least_word = std::min(obstacle.least_word, counted.largest_word());
    if (!counted.fits_words()) return;
    PlanCost cost = plan_cost_of(c_, counted);
    const std::int64_t bytes = (cost.temp + cost.resident).value;
    obstacle.least_bytes = std::min(obstacle.least_bytes, bytes);
    if (cost.temp.value > limits_.temp || bytes > limits_.bytes) return;
    result_.fitting.push_back({cut.parts, cut.bands, cut.tiles, cut.runs, cost.cycles, cost.temp});
    const bool is_better = !result_.best || cost.cycles < result_.cost.cycles ||
                           (cost.cycles == result_.cost.cycles && cost.temp < result_.cost.temp);
    if (!is_better) return;
    result_.best = cut;
    result_.cost = std::move(cost);
  }

  const StaticCase& c_;
  CutCounts& counts_;
  const StaticLimits& limits_;
  CountedSearch result_;
  std::set<CountedCut> seen_;
};

// Returns the cuts of a coarse grid, the most promising first.
std::vector<CountedCut> promising_cuts(const StaticCase& c, const StaticLimits& limits) {
  std::vector<std::pair<double, CountedCut>> cuts;
  const std::int64_t grains = c.columns() / c.grain();
  for (const std::int64_t parts : growing(std::min(grains, c.machine.tiles), limits.z_parts))
    for (const std::int64_t bands : growing(std::ssize(c.counts.columns), limits.bands))
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

CountedSearch search_by_counts(const StaticCase& c, CutCounts& counts, const StaticLimits& limits) {
  // Blocks and tiles that are looked at, so that a pattern of a million elements takes about a
  // quarter of a second and a small one less than a twentieth.
  constexpr std::int64_t kLooks = std::int64_t{1} << 25, kLooksOfTile = 192;
  constexpr std::int64_t kFewest = 24, kMost = 640;
  // Counting the transposed blocks of GradA takes so many times as long as counting the blocks.
  constexpr std::int64_t kTransposed = 4;
  const std::int64_t looks = c.counts.blocks * (c.problem.grad_a ? 1 + kTransposed : 1) +
                             kLooksOfTile * std::min(c.machine.tiles, c.counts.blocks);
  const std::int64_t most = std::clamp(kLooks / looks, kFewest, kMost);
  CutCounter counter(c, counts, limits);
  const std::vector<CountedCut> cuts = promising_cuts(c, limits);
  for (const CountedCut& cut : cuts) {
    if (counter.result().counted >= most && counter.result().best) break;
    counter.try_cut(cut);
  }
  if (counter.result().best) improve(c, counter);
  return counter.result();
}

std::vector<StaticRunnerUp> runner_ups(const CountedSearch& search, std::size_t most) {
  std::vector<StaticRunnerUp> others = search.fitting;
  if (search.best)
    std::erase_if(others, [&best = *search.best](const StaticRunnerUp& r) {
      return r.z_parts == best.parts && r.bands == best.bands && r.tiles == best.tiles &&
             r.runs == best.runs;
    });
  std::ranges::stable_sort(others, {}, &StaticRunnerUp::cycles);
  others.resize(std::min(most, others.size()));
  return others;
}

StaticPlan plan_of(const StaticCase& c, const BlockPattern& pattern, const CountedCut& cut) {
  const BandedRows rows = banded_rows(pattern, bands_of(c.counts, cut.bands));
  StaticPlan plan{.data_type = c.problem.data_type,
                  .z_parts = cut.parts,
                  .bands = rows.bands.begin,
                  .parts = {},
                  .layouts = {{}},
                  .cost = {}};
  StaticLayout& layout = plan.layouts.front();
  const StaticRuns runs = runs_of(rows, cut.tiles, cut.runs);
  layout.tiles = deal_runs(pattern, rows, runs, &layout.tile_of).tiles;
  for (std::int64_t begin = 0, tile = 0; begin < c.columns(); begin += cut.share) {
    plan.parts.push_back({begin, std::min(begin + cut.share, c.columns()), tile, 0});
    tile += std::ssize(layout.tiles);
  }
  plan.cost = plan_cost_of(c, counted_parts(c, plan, pattern));
  return plan;
}

}  // namespace tessera::planner::internal
