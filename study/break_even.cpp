#include "tessera/study/break_even.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace tessera::study {
namespace {

// A density with its cost; infinite if nothing fits or the cost is unknown.
constexpr double kNoCost = std::numeric_limits<double>::infinity();

struct DensityStep {
  std::int64_t step = 0;
  double cost = kNoCost;

  bool has_cost() const { return cost < kNoCost; }
};

// The interval of densities in which the break-even density is: sparse costs less than dense at
// `low` and not at `high`.
class Interval {
 public:
  Interval(double dense, std::optional<std::int64_t> reach, const DensityGrid& grid)
      : dense_(dense),
        grid_(grid),
        low_{.step = reach.value_or(0)},
        high_{.step = grid.halves ? grid.steps : grid.steps + 1},
        leaps_(reach.has_value()) {
    for (const auto& [density, cost] : grid.known)
      add(std::llround(density * double(grid.steps)),
          {.pays = cost && *cost < dense, .cost = {.value = cost}});
  }

  bool is_open() const { return high_.step - low_.step > 1; }
  std::int64_t low() const { return low_.step; }

  void add(std::int64_t step, const Look& look) {
    if (step <= low_.step || step >= high_.step) return;
    // A curved line meets `dense` on one side of the true place again and again.
    push_ = look.pays == last_low_ ? std::min(2 * push_, grid_.steps) : 1;
    last_low_ = look.pays;
    is_new_ = false;
    leaps_ = look.pays && look.reach > step;
    (look.pays ? low_ : high_) = DensityStep{step, look.cost.value.value_or(kNoCost)};
    if (leaps_) low_ = {std::min(look.reach, high_.step - 1)};
  }

  // Returns the density to look at next.
  std::int64_t next() const {
    std::int64_t step = (low_.step + high_.step) / 2;
    if (leaps_) {
      // A plan pays up to here. Where no other plan pays at the next density, the search ends.
      step = low_.step + 1;
    } else if (grid_.halves) {
      return step;
    } else if (is_new_) {
      step = std::llround(grid_.guess * double(grid_.steps));
    } else if (low_.has_cost() && high_.has_cost() && high_.cost > low_.cost) {
      const double part = (dense_ - low_.cost) / (high_.cost - low_.cost);
      step = low_.step + std::llround(part * double(high_.step - low_.step)) +
             (last_low_ ? push_ : -push_);
    } else if (last_low_ && low_.has_cost() && low_.cost > 0) {
      // The cost of a sparse layer grows more slowly than its density.
      constexpr double kBeyond = 1.25;
      const double growth = std::min(dense_ / low_.cost, 1e3) - 1;
      step = low_.step + std::int64_t(kBeyond * double(low_.step) * growth);
    }
    return std::clamp(step, low_.step + 1, high_.step - 1);
  }

 private:
  double dense_;
  const DensityGrid& grid_;
  DensityStep low_, high_;
  bool is_new_ = true, leaps_, last_low_ = false;
  std::int64_t push_ = 1;
};

double search(CostModel& model, Form form, double dense, const DensityGrid& grid) {
  Interval interval(dense, model.known_reach(form, dense), grid);
  while (interval.is_open() && !(grid.is_stopped && grid.is_stopped())) {
    const std::int64_t step = interval.next();
    form.density = double(step) / double(grid.steps);
    const Look look = model.look(form, dense);
    if (grid.seen) grid.seen(form.density, look.cost);
    interval.add(step, look);
  }
  return double(interval.low()) / double(grid.steps);
}

}  // namespace

double break_even(CostModel& model, const Form& form, double dense, const DensityGrid& grid) {
  Form random = form;
  random.pattern = nullptr;
  const double found = search(model, random, dense, grid);
  if (found < 1) return found;
  random.density = 1;
  const Cost full = model.cheapest(random);
  if (!full.value) return found;
  return search(model, random, *full.value * (1 - model.error(full, full)), grid);
}

}  // namespace tessera::study
