#include "tessera/tests/planner/exhaustive_search.hpp"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "tessera/base/int_math.hpp"

namespace tessera::planner::internal {

Ranking rank_exhaustively(const std::vector<Case>& cases, std::int64_t temp_bound,
                          const Wanted& wanted) {
  Ranking ranking{.memory_bound = Bytes(temp_bound)};
  std::vector<RankedPlan> all;
  for (const Case& c : cases)
    visit_partitions(c, [&](Dims parts) {
      ++ranking.evaluations;
      const PartsCost cost = cost_of(c, parts);
      if (cost.legal && cost.temp <= temp_bound && cost.cycles < wanted.fewer_than)
        all.push_back({&c, {parts, cost.cycles, cost.temp}});
    });
  std::ranges::stable_sort(
      all, {}, [](const RankedPlan& plan) { return std::pair(plan.at.cycles, plan.at.temp); });
  for (const RankedPlan& plan : all) {
    if (std::ssize(ranking.cheapest) == wanted.count) break;
    const bool is_known = std::ranges::any_of(ranking.cheapest, [&plan](const RankedPlan& other) {
      const Candidate &a = plan.of->candidate, &b = other.of->candidate;
      return plan.at.parts == other.at.parts && a.block == b.block && a.dense == b.dense;
    });
    if (!is_known) ranking.cheapest.push_back(plan);
  }
  return ranking;
}

namespace {

// Returns the counts of parts, up to `most`, that leave no share of whole grains empty.
std::vector<std::int64_t> counts_of(std::int64_t size, std::int64_t grain, std::int64_t most) {
  const std::int64_t grains = ceil_div(size, grain);
  std::vector<std::int64_t> counts;
  for (std::int64_t parts = 1; parts <= std::min(grains, most); ++parts)
    if (ceil_div(grains, ceil_div(grains, parts)) == parts) counts.push_back(parts);
  return counts;
}

class EveryDenseCut {
 public:
  EveryDenseCut(const DenseCase& c, const DenseLimits& limits) : case_(c), limits_(limits) {
    result.least_bytes = kUnbounded;
  }

  void try_rounds(const ProductShape& rounds) {
    const ProductShape& size = case_.product.size;
    const ProductShape whole = case_.round_grain();
    if (rounds.rows > ceil_div(size.rows, whole.rows)) return;
    if (rounds.columns > ceil_div(size.columns, whole.columns)) return;
    for (const Side weights : {Side::Left, Side::Right}) try_parts(rounds, weights);
  }

  DenseSearch result;
  bool any_fits = false;

 private:
  void try_parts(const ProductShape& rounds, Side weights) {
    const ProductShape size = case_.round_size(rounds), grain = case_.grain(weights);
    const std::int64_t tiles = case_.machine.tiles / case_.groups;
    for (const std::int64_t r : counts_of(size.rows, grain.rows, tiles))
      for (const std::int64_t i :
           counts_of(size.inner, grain.inner, case_.selection ? 1 : tiles / r))
        for (const std::int64_t c : counts_of(size.columns, grain.columns, tiles / (r * i)))
          for (const Side neighbours : {Side::Left, Side::Right})
            consider({rounds, {r, i, c}, weights, neighbours});
  }

  void consider(const DenseCut& cut) {
    const DenseEstimate e = dense_estimate(case_, cut);
    ++result.estimates;
    result.least_bytes = std::min(result.least_bytes, e.temp + e.resident);
    if (e.temp > limits_.temp || e.temp + e.resident > limits_.all) return;
    any_fits = true;
    if (e.cycles >= limits_.fewer_than) return;
    const auto rank = [](const DenseEstimate& x) { return std::tuple(x.cycles, x.temp); };
    if (!result.best || rank(e) < rank(result.best->estimate)) result.best = {cut, e};
  }

  const DenseCase& case_;
  const DenseLimits& limits_;
};

}  // namespace

DenseSearch search_dense_exhaustively(const DenseCase& c, const DenseLimits& limits) {
  EveryDenseCut cuts(c, limits);
  std::int64_t most = kMostDenseRounds;
  for (std::int64_t rounds = 1; rounds <= most; rounds *= 2) {
    if (cuts.any_fits) most = std::min(most, 4 * rounds);
    for (std::int64_t rows = 1; rows <= rounds; rows *= 2)
      cuts.try_rounds({rows, 1, rounds / rows});
  }
  return cuts.result;
}

}  // namespace tessera::planner::internal
