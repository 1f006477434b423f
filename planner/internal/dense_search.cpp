#include "tessera/planner/internal/dense_search.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <span>
#include <tuple>
#include <vector>

#include "tessera/base/int_math.hpp"

namespace tessera::planner::internal {
namespace {

// A number of parts of a dimension, and the size of its first share.
struct Count {
  std::int64_t parts = 1, first = 1;
};

// Returns the counts of parts, up to `most`, that leave no share of whole grains empty.
std::vector<Count> share_counts(std::int64_t size, std::int64_t grain, std::int64_t most) {
  const std::int64_t grains = ceil_div(size, grain);
  std::vector<Count> counts;
  for (std::int64_t parts = 1; parts <= std::min(grains, most);) {
    const std::int64_t share = ceil_div(grains, parts);
    counts.push_back({ceil_div(grains, share), std::min(size, share * grain)});
    if (share == 1) break;
    parts = ceil_div(grains, share - 1);
  }
  return counts;
}

class PartSearch {
 public:
  PartSearch(const DenseCase& c, const DenseLimits& limits, bool bounded)
      : case_(c),
        limits_(limits),
        bounded_(bounded),
        per_multiply_add_(cycles_of_multiply_add(c) * (1 - 1e-9)),
        homes_(dense_homes(c)) {
    result_.least_bytes = std::numeric_limits<std::int64_t>::max();
  }

  // Returns true if some cut so far keeps the limits of memory, whatever it costs.
  bool any_fits() const { return any_fits_; }

  void try_rounds(const ProductShape& rounds) {
    const ProductShape& size = case_.product.size;
    const ProductShape whole = case_.round_grain();
    if (rounds.rows > ceil_div(size.rows, whole.rows) ||
        rounds.columns > ceil_div(size.columns, whole.columns))
      return;
    for (const Side weights : {Side::Left, Side::Right}) try_parts(rounds, weights);
  }

  const DenseSearch& result() const { return result_; }

 private:
  void try_parts(const ProductShape& rounds, Side weights) {
    const ProductShape size = case_.round_size(rounds), grain = case_.grain(weights);
    const std::int64_t tiles = case_.machine.tiles / case_.groups;
    const auto rows = share_counts(size.rows, grain.rows, tiles);
    // A search needs finished sums.
    const auto inner = share_counts(size.inner, grain.inner, case_.selection ? 1 : tiles);
    const auto columns = share_counts(size.columns, grain.columns, tiles);
    Trial t{{rounds, {}, weights}, {}};
    for (const Count& r : rows) {
      t.set(&ProductShape::rows, r);
      auto end = columns.end();
      for (const Count& i : inner) {
        t.set(&ProductShape::inner, i);
        while (end != columns.begin() && r.parts * i.parts * std::prev(end)->parts > tiles) --end;
        try_columns(t, {columns.begin(), end});
      }
    }
  }

  // A cut, and the slice of its first tile.
  struct Trial {
    DenseCut cut;
    ProductShape tile;

    void set(std::int64_t ProductShape::* side, const Count& c) {
      cut.parts.*side = c.parts;
      tile.*side = c.first;
    }
  };

  // Tries these counts of parts of the columns with the other two dimensions of `t`. More parts are
  // smaller slices and fewer products for a tile, so the hopeless counts come first.
  void try_columns(Trial& t, std::span<const Count> columns) {
    const auto hopeless = [&](const Count& c) {
      t.set(&ProductShape::columns, c);
      return bounded_ && is_hopeless(t);
    };
    if (columns.empty() || hopeless(columns.back())) return;
    for (auto c = std::partition_point(columns.begin(), columns.end(), hopeless);
         c != columns.end(); ++c) {
      if (hopeless(*c) || (bounded_ && cannot_win(t))) continue;
      for (const Side neighbours : {Side::Left, Side::Right}) {
        t.cut.neighbours = neighbours;
        consider(t.cut);
      }
    }
  }

  // Rules out most cuts in little time: those whose slices do not fit a tile, alone or beside the
  // tile's share of all operands, and those that cost too much by the kernel at its highest rate or
  // by the exchange and the kernel.
  bool is_hopeless(const Trial& t) const {
    const auto& [cut, tile] = t;
    // The number of rounds depends on the first cut that fits, so a cut that costs too much is
    // priced until one fits.
    const std::int64_t most = any_fits_ ? most_cycles() : kUnbounded;
    const double products = double(cut.rounds.product()) * double(tile.product());
    if (per_multiply_add_ * products > double(most)) return true;
    const std::int64_t slices = dense_slices(case_, tile);
    if (slices > limits_.temp) return true;
    if (slices + homes_ / cut.parts.product() > limits_.all) return true;
    return any_fits_ && dense_lower_bound(case_, cut, tile) > most;
  }

  bool cannot_win(const Trial& t) const {
    return any_fits_ && dense_close_bound(case_, t.cut, t.tile) > most_cycles();
  }

  // A cut with as many cycles as the best one can still win by less memory.
  std::int64_t most_cycles() const {
    return std::min(result_.best ? result_.best->estimate.cycles : kUnbounded,
                    limits_.fewer_than - 1);
  }

  void consider(const DenseCut& cut) {
    const DenseEstimate e = dense_estimate(case_, cut);
    ++result_.estimates;
    result_.least_bytes = std::min(result_.least_bytes, e.temp + e.resident);
    if (e.temp > limits_.temp || e.temp + e.resident > limits_.all) return;
    any_fits_ = true;
    if (e.cycles >= limits_.fewer_than) return;
    const auto rank = [](const DenseEstimate& x) { return std::tuple(x.cycles, x.temp); };
    if (!result_.best || rank(e) < rank(result_.best->estimate)) result_.best = {cut, e};
  }

  const DenseCase& case_;
  const DenseLimits& limits_;
  const bool bounded_;
  const double per_multiply_add_;  // the least cycles of the kernel
  const std::int64_t homes_;       // bytes of all operands and results of a group
  bool any_fits_ = false;
  DenseSearch result_;
};

DenseSearch search(const DenseCase& c, const DenseLimits& limits, bool bounded) {
  // More rounds than the memory needs are cheaper where larger slices of an operand that stays
  // save exchange. Up to a factor of 16 was tried on 34 products of sides 1024 to 8192, and none
  // gained beyond four.
  constexpr std::int64_t kMoreRounds = 4;
  PartSearch search(c, limits, bounded);
  std::int64_t most = kMostDenseRounds;
  for (std::int64_t rounds = 1; rounds <= most; rounds *= 2) {
    if (search.any_fits()) most = std::min(most, rounds * kMoreRounds);
    for (std::int64_t rows = 1; rows <= rounds; rows *= 2)
      search.try_rounds({rows, 1, rounds / rows});
  }
  return search.result();
}

}  // namespace

// The least bytes are those of all cuts, so a search for any cut that finds none prices them all.
DenseSearch search_dense(const DenseCase& c, const DenseLimits& limits) {
  DenseSearch found = search(c, limits, /*bounded=*/true);
  const bool is_answer = found.best || limits.fewer_than != kUnbounded;
  return is_answer ? found : search(c, limits, /*bounded=*/false);
}

DensePassPlan pass_plan(const DenseCase& c, const DenseChoice& best) {
  DensePassPlan plan{.product = c.product,
                     .rounds = best.cut.rounds,
                     .parts = best.cut.parts,
                     .grain = c.grain(best.cut.weights),
                     .weights = best.cut.weights,
                     .neighbours = best.cut.neighbours,
                     .cost = {c.product.pass, {}}};
  for (const DenseStep& step : best.estimate.steps)
    plan.cost.terms.push_back({step.term, Cycles(step.cycles), Bytes(step.temp)});
  return plan;
}

void add_pass(DensePlan& plan, DensePassPlan pass, Bytes resident) {
  plan.cost.add(pass.cost);
  plan.cost.resident = std::max(plan.cost.resident, resident);
  plan.passes.push_back(std::move(pass));
}

}  // namespace tessera::planner::internal
