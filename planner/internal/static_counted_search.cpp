#include "tessera/planner/internal/static_counted_search.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "tessera/base/int_math.hpp"
#include "tessera/planner/internal/static_estimate.hpp"

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
  // Counts `most` cuts at most, if given.
  CutCounter(const StaticCase& c, CutCounts& counts, const StaticLimits& limits,
             std::optional<std::int64_t> most = {})
      : c_(c),
        counts_(counts),
        limits_(limits),
        most_(most),
        counts_transposed_(c.problem.grad_a && !c.grad_a_alone) {
    constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
    result_.obstacle = {kNone, kNone};
  }

  // Counts the cut unless it was counted, or cannot be better than the best. Returns its cycles if
  // it was counted and fits.
  std::optional<Cycles> try_cut(const CountedCut& cut) {
    if (most_ && result_.counted >= *most_) return {};
    if (!limits_.allow(cut.parts, cut.bands) || !seen_.insert(cut).second) return {};
    if (result_.best && least_cycles(c_, cut) >= result_.cost.cycles.value) return {};
    const CutLoads* loads = counts_.loads({cut.bands, cut.tiles, cut.runs}, counts_transposed_);
    if (loads == nullptr) return {};
    ++result_.counted;
    return consider(cut, counted_cut(c_, *loads, cut.share, cut.parts));
  }

  void stop_after(std::int64_t counted) { most_ = counted; }

  const CountedSearch& result() const { return result_; }

 private:
  std::optional<Cycles> consider(const CountedCut& cut, const CountedPasses& counted) {
    StaticObstacle& obstacle = result_.obstacle;
    obstacle.least_word = std::min(obstacle.least_word, counted.largest_word());
    if (!counted.fits_words()) return {};
    PlanCost cost = plan_cost_of(c_, counted);
    const std::int64_t bytes = (cost.temp + cost.resident).value;
    obstacle.least_bytes = std::min(obstacle.least_bytes, bytes);
    if (cost.temp.value > limits_.temp || bytes > limits_.bytes) return {};
    const Cycles cycles = cost.cycles;
    result_.fitting.push_back({cut.parts, cut.bands, cut.tiles, cut.runs, cost.cycles, cost.temp});
    const bool is_better = !result_.best || cost.cycles < result_.cost.cycles ||
                           (cost.cycles == result_.cost.cycles && cost.temp < result_.cost.temp);
    if (!is_better) return cycles;
    result_.best = cut;
    result_.cost = std::move(cost);
    return cycles;
  }

  const StaticCase& c_;
  CutCounts& counts_;
  const StaticLimits& limits_;
  std::optional<std::int64_t> most_;
  bool counts_transposed_;
  CountedSearch result_;
  std::set<CountedCut> seen_;
};

// A cut with about the cycles that it takes.
using EstimatedCut = std::pair<double, CountedCut>;

// Returns the cuts of a coarse grid, the most promising first.
std::vector<EstimatedCut> promising_cuts(const StaticCase& c, const StaticLimits& limits) {
  std::vector<EstimatedCut> cuts;
  const std::int64_t grains = c.columns() / c.grain();
  for (const std::int64_t parts : growing(std::min(grains, c.machine.tiles), limits.z_parts))
    for (const std::int64_t bands : growing(std::ssize(c.counts.columns), limits.bands))
      for (const RunKind runs : {RunKind::Even, RunKind::LightRows, RunKind::UncutRows})
        if (const auto cut = cut_in(c, parts, bands, runs))
          cuts.emplace_back(estimated_cycles(c, *cut), *cut);
  std::ranges::sort(cuts);
  return cuts;
}

// Cuts of which the one that is expected to be the cheapest is chosen again and again.
class CutPool {
 public:
  CutPool(const std::vector<EstimatedCut>& cuts, Corrections& corrections)
      : corrections_(corrections) {
    std::map<std::pair<std::int64_t, RunKind>, int> chosen;
    for (const auto& [cycles, cut] : cuts) {
      constexpr int kOfAKind = 3;  // with the same parts and runs, besides those of few bands
      const bool has_few_bands = std::has_single_bit(std::uint64_t(cut.bands)) && cut.bands <= 16;
      if (chosen[{cut.parts, cut.runs}]++ < kOfAKind || has_few_bands)
        pool_.push_back({cut, cycles, corrections.nearest(cut)});
    }
  }

  bool is_empty() const { return pool_.empty(); }

  // Takes the most promising cut out of the pool.
  CountedCut take() {
    const auto best = std::ranges::min_element(
        pool_, {}, [](const Entry& entry) { return entry.cycles * entry.nearest.factor; });
    last_ = *best;
    *best = pool_.back();
    pool_.pop_back();
    return last_.cut;
  }

  // Learns the counted cycles of the cut that was taken.
  void learn(Cycles counted) {
    const double factor = double(counted.value) / last_.cycles;
    corrections_.learn(last_.cut, factor);
    for (Entry& entry : pool_) {
      const double distance = Corrections::distance(last_.cut, entry.cut);
      if (distance < entry.nearest.distance) entry.nearest = {factor, distance};
    }
  }

 private:
  struct Entry {
    CountedCut cut;
    double cycles = 0;  // estimated
    Corrections::Nearest nearest;
  };

  Corrections& corrections_;
  std::vector<Entry> pool_;
  Entry last_;
};

// Counts promising cuts until there are `most` of them and one fits.
void count_promising(const StaticCase& c, const StaticLimits& limits, std::int64_t most,
                     Corrections& corrections, CutCounter& counter) {
  for (CutPool pool(promising_cuts(c, limits), corrections); !pool.is_empty();) {
    if (counter.result().counted >= most && counter.result().best) break;
    if (const auto cycles = counter.try_cut(pool.take())) pool.learn(*cycles);
  }
}

// Returns the numbers of tiles to try beside one: rows on fewer tiles are added by fewer.
std::vector<std::int64_t> fewer_tiles(std::int64_t tiles) {
  return {tiles, tiles - 1, tiles - tiles / 8, tiles - tiles / 4, tiles / 2};
}

// Counts a cut if it may be better than the best. If `corrections` are given, that is decided by
// the corrected estimate.
void try_neighbour(const StaticCase& c, const CountedCut& cut, const Corrections* corrections,
                   CutCounter& counter) {
  const double most = double(counter.result().cost.cycles.value);
  if (corrections != nullptr && estimated_cycles(c, cut) * corrections->nearest(cut).factor > most)
    return;
  counter.try_cut(cut);
}

void try_neighbours(const StaticCase& c, const CountedCut& at, const Corrections* corrections,
                    CutCounter& counter) {
  for (const std::int64_t parts : {at.parts, at.parts - 1, at.parts + 1})
    for (const std::int64_t bands : {at.bands, at.bands - 1, at.bands + 1})
      for (const RunKind runs : kRunKinds)
        if (const auto cut = cut_in(c, parts, bands, runs))
          try_neighbour(c, *cut, corrections, counter);
  for (const std::int64_t tiles : fewer_tiles(at.tiles))
    for (const RunKind runs : kRunKinds) {
      CountedCut cut = at;
      cut.tiles = tiles;
      cut.runs = runs;
      if (tiles >= at.bands) try_neighbour(c, cut, corrections, counter);
    }
}

// Tries the neighbours of the best cut until none is better.
void improve(const StaticCase& c, const Corrections* corrections, CutCounter& counter) {
  for (std::optional<CountedCut> at; at != counter.result().best;) {
    at = counter.result().best;
    try_neighbours(c, *at, corrections, counter);
  }
}

}  // namespace

namespace {

// Returns how many cuts to count so that all of them together look at about `looks` blocks.
std::int64_t cuts_for(const StaticCase& c, std::int64_t looks, std::int64_t fewest,
                      std::int64_t most) {
  constexpr std::int64_t kLooksOfTile = 192;
  constexpr std::int64_t kTransposed = 2;  // of a block that is counted for GradA as well
  const std::int64_t looks_of_cut =
      c.counts.blocks * (c.problem.grad_a && !c.grad_a_alone ? 1 + kTransposed : 1) +
      kLooksOfTile * std::min(c.machine.tiles, c.counts.blocks);
  return std::clamp(looks / looks_of_cut, fewest, most);
}

}  // namespace

void Corrections::learn(const CountedCut& cut, double factor) { counted_.push_back({cut, factor}); }

Corrections::Nearest Corrections::nearest(const CountedCut& cut) const {
  Nearest result;
  for (const auto& [other, factor] : counted_) {
    const double far = distance(other, cut);
    if (far < result.distance) result = {factor, far};
  }
  return result;
}

double Corrections::distance(const CountedCut& a, const CountedCut& b) {
  constexpr double kOtherRuns = 2;
  const auto steps = [](std::int64_t m, std::int64_t n) {
    return std::abs(std::log(double(m)) - std::log(double(n)));
  };
  return steps(a.parts, b.parts) + steps(a.bands, b.bands) + (a.runs == b.runs ? 0 : kOtherRuns);
}

CountedSearch StaticSearcher::search(const StaticCase& c, const StaticLimits& limits) {
  // Limits so that a pattern of a million elements takes about a quarter of a second and a small
  // one less than a twentieth.
  constexpr std::int64_t kLooks = std::int64_t{1} << 25, kFewest = 24, kMost = 640;
  constexpr std::int64_t kFewerAgain = 8;  // where an earlier search has corrected the estimates
  Corrections& corrections = corrections_[{c.problem.grad_a, c.problem.grad_w, c.grad_a_alone}];
  const bool again = !corrections.is_empty();
  const std::int64_t most = cuts_for(c, kLooks, kFewest, kMost);
  CutCounter counter(c, counts_, limits);
  count_promising(c, limits, again ? most / kFewerAgain : most, corrections, counter);
  if (counter.result().best) improve(c, again ? &corrections : nullptr, counter);
  return counter.result();
}

CountedSearch quick_search(const StaticCase& c, CutCounts& counts, const StaticLimits& limits) {
  constexpr std::int64_t kLooks = std::int64_t{1} << 22, kFewest = 12, kMost = 48;
  constexpr std::int64_t kPatience = 4;  // so many times as many are counted if none fits
  const std::int64_t most = cuts_for(c, kLooks, kFewest, kMost);
  CutCounter counter(c, counts, limits, kPatience * most);
  Corrections corrections;
  count_promising(c, limits, most * 2 / 3, corrections, counter);
  counter.stop_after(most);
  if (counter.result().best) improve(c, nullptr, counter);
  return counter.result();
}

std::vector<StaticRunnerUp> runner_ups(const CountedSearch& search, bool best_is_plan,
                                       std::size_t most) {
  std::vector<StaticRunnerUp> others = search.fitting;
  if (search.best && best_is_plan)
    std::erase_if(others, [&best = *search.best](const StaticRunnerUp& r) {
      return r.z_parts == best.parts && r.bands == best.bands && r.tiles == best.tiles &&
             r.runs == best.runs;
    });
  std::ranges::stable_sort(others, {}, &StaticRunnerUp::cycles);
  others.resize(std::min(most, others.size()));
  return others;
}

StaticAssignment assignment_of(const StaticCase& c, const BlockPattern& pattern,
                               const CountedCut& cut) {
  const BandedRows rows = banded_rows(pattern, bands_of(c.counts, cut.bands));
  StaticAssignment result{
      .z_parts = cut.parts, .bands = rows.bands.begin, .parts = {}, .layouts = {{}}};
  StaticLayout& layout = result.layouts.front();
  const StaticRuns runs = runs_of(rows, cut.tiles, cut.runs);
  layout.tiles = deal_runs(pattern, rows, runs, &layout.tile_of).tiles;
  for (std::int64_t begin = 0, tile = 0; begin < c.columns(); begin += cut.share) {
    result.parts.push_back({begin, std::min(begin + cut.share, c.columns()), tile, 0});
    tile += std::ssize(layout.tiles);
  }
  return result;
}

StaticPlan plan_of(const StaticCase& c, StaticAssignment assignment) {
  return {std::move(assignment), c.problem.data_type, {}, {}};
}

}  // namespace tessera::planner::internal
