#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>

#include "tessera/base/random.hpp"
#include "tessera/planner/solver/checker.hpp"
#include "tessera/planner/solver/solver.hpp"

// Random models against enumeration. The twin of each model is a list of plain functions.
namespace tessera::planner::solver {
namespace {

using Values = std::vector<Value>;
// Adds one derived value, or judges; false: no solution.
using Step = std::function<bool(Values&)>;

// A model and, value by value, the same thing without the solver: free variables first, then each
// derived variable in the order of its id.
struct Twin {
  Model model;
  std::vector<VarId> free, all;
  std::vector<Interval> domains;  // of the free ones
  std::vector<Step> steps;
  std::vector<Objective> objectives;
};

Value up(Value n, Value d) { return (n + d - 1) / d; }

using Binary = std::optional<Value> (*)(Value, Value);
struct Operation {
  VarId (Model::*post)(VarId, VarId);
  Binary value;
};

const std::array<Operation, 14>& operations() {
  using O = std::optional<Value>;
  static const std::array<Operation, 14> all{{
      {&Model::product, [](Value a, Value b) { return O(a * b); }},
      {&Model::sum, [](Value a, Value b) { return O(a + b); }},
      {&Model::sub, [](Value a, Value b) { return a >= b ? O(a - b) : O(); }},
      {&Model::max, [](Value a, Value b) { return O(std::max(a, b)); }},
      {&Model::min, [](Value a, Value b) { return O(std::min(a, b)); }},
      {&Model::ceil_div, [](Value a, Value b) { return b > 0 ? O(up(a, b)) : O(); }},
      {&Model::floor_div, [](Value a, Value b) { return b > 0 ? O(a / b) : O(); }},
      {&Model::mod, [](Value a, Value b) { return b > 0 ? O(a % b) : O(); }},
      {&Model::ceil_div_minimal_divisor,
       [](Value a, Value b) {
         const bool least = b == 1 || (b > 1 && up(a, b) != up(a, b - 1));
         return least ? O(up(a, b)) : O();
       }},
      {&Model::reified_less, [](Value a, Value b) { return O(a < b ? 1 : 0); }},
      {&Model::reified_less_or_equal, [](Value a, Value b) { return O(a <= b ? 1 : 0); }},
      {&Model::reified_equal, [](Value a, Value b) { return O(a == b ? 1 : 0); }},
      {&Model::logical_or, [](Value a, Value b) { return O(a != 0 || b != 0 ? 1 : 0); }},
      {&Model::logical_and, [](Value a, Value b) { return O(a != 0 && b != 0 ? 1 : 0); }},
  }};
  return all;
}

class TwinMaker {
 public:
  explicit TwinMaker(std::uint64_t seed) : random_(seed) {}

  Twin make() {
    add_free(2 + random_.below(3));
    const std::int64_t derived = 1 + random_.below(6);
    for (std::int64_t i = 0; i < derived; ++i) add_derived();
    for (std::int64_t i = random_.below(3); i > 0; --i) add_relation();
    for (std::int64_t i = 1 + random_.below(3); i > 0; --i) add_objective();
    add_priorities();
    return std::move(twin_);
  }

 private:
  std::size_t any() {
    return static_cast<std::size_t>(random_.below(static_cast<std::int64_t>(twin_.all.size())));
  }

  void add_free(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      const Value lo = random_.below(4), hi = lo + random_.below(8);
      twin_.domains.push_back({lo, hi});
      twin_.free.push_back(twin_.model.variable(lo, hi));
      twin_.all.push_back(twin_.free.back());
    }
  }

  void add_derived() {
    const std::int64_t kind = random_.below(17);
    const std::size_t a = any(), b = any();
    if (kind < 14) {
      const Operation& o = operations()[static_cast<std::size_t>(kind)];
      twin_.all.push_back((twin_.model.*o.post)(twin_.all[a], twin_.all[b]));
      add_value([o, a, b](const Values& v) { return o.value(v[a], v[b]); });
    } else if (kind == 14) {
      twin_.all.push_back(twin_.model.logical_not(twin_.all[a]));
      add_value([a](const Values& v) { return std::optional<Value>(v[a] == 0 ? 1 : 0); });
    } else {
      add_call(kind == 15, a, b);
    }
  }

  // 3 a + max(0, 20 - b), nothing for a == b == 2; posted with or without a lower bound.
  void add_call(bool bounded, std::size_t a, std::size_t b) {
    const Function f = [](std::span<const Value> v) {
      if (v[0] == 2 && v[1] == 2) return std::optional<Value>();
      return std::optional<Value>(3 * v[0] + std::max<Value>(0, 20 - v[1]));
    };
    const LowerBound lower = [](std::span<const Interval> v) {
      return std::optional<Value>(3 * v[0].lo + std::max<Value>(0, 20 - v[1].hi));
    };
    const std::vector<VarId> arguments{twin_.all[a], twin_.all[b]};
    twin_.all.push_back(bounded ? twin_.model.call_bounded(arguments, f, lower)
                                : twin_.model.call(arguments, f));
    add_value([f, a, b](const Values& v) { return f(std::array{v[a], v[b]}); });
  }

  void add_value(std::function<std::optional<Value>(const Values&)> value) {
    twin_.steps.push_back([value = std::move(value)](Values& v) {
      const std::optional<Value> r = value(v);
      if (r) v.push_back(*r);
      return r.has_value();
    });
  }

  void add_relation() {
    const std::size_t a = any(), b = any();
    const VarId va = twin_.all[a], vb = twin_.all[b];
    switch (random_.below(4)) {
      case 0:
        twin_.model.less(va, vb);
        return judge([a, b](const Values& v) { return v[a] < v[b]; });
      case 1:
        twin_.model.less_or_equal(va, vb);
        return judge([a, b](const Values& v) { return v[a] <= v[b]; });
      case 2:
        twin_.model.factor_of(va, vb);
        return judge([a, b](const Values& v) { return v[b] != 0 && v[a] % v[b] == 0; });
      default:
        twin_.model.equal(va, vb);
        return judge([a, b](const Values& v) { return v[a] == v[b]; });
    }
  }

  void judge(std::function<bool(const Values&)> judgement) {
    twin_.steps.push_back([judgement = std::move(judgement)](Values& v) { return judgement(v); });
  }

  void add_objective() {
    const std::size_t a = any();
    const Value bound = random_.below(4) == 0 ? random_.below(30) : kMaxValue;
    twin_.objectives.push_back({twin_.all[a], bound});
    judge([a, bound](const Values& v) { return v[a] <= bound; });
  }

  // Free variables into groups that precede the default one, in a random order.
  void add_priorities() {
    const std::array groups{twin_.model.add_priority_group(), twin_.model.add_priority_group()};
    const bool swapped = random_.below(2) == 1;
    twin_.model.prioritise(groups[swapped ? 1 : 0], groups[swapped ? 0 : 1]);
    for (const GroupId g : groups) twin_.model.prioritise(g, twin_.model.default_group());
    for (const VarId v : twin_.free)
      twin_.model.set_priority(v, groups[static_cast<std::size_t>(random_.below(2))]);
  }

  Random random_;
  Twin twin_;
};

// Every assignment of the free variables in branching order, each ascending, where a solution comes
// behind those that are as good: the tie rule as it is written down.
class Enumeration {
 public:
  explicit Enumeration(const Twin& twin) : twin_(&twin), now_(twin.free.size()) {
    for (const VarId v : twin.model.branching_order())
      if (v.value < static_cast<std::int32_t>(twin.free.size()))
        order_.push_back(static_cast<std::size_t>(v.value));
    for (std::size_t v = 0; v < twin.free.size(); ++v) now_[v] = twin.domains[v].lo;
    visit(0);
    std::ranges::stable_sort(solutions_, {}, &Solution::objectives);
  }
  // All solutions from the best one on.
  std::vector<Values> ranked() const {
    std::vector<Values> ranked;
    for (const Solution& solution : solutions_) ranked.push_back(solution.values);
    return ranked;
  }

 private:
  void visit(std::size_t place) {
    if (place == order_.size()) return judge();
    const std::size_t v = order_[place];
    for (now_[v] = twin_->domains[v].lo; now_[v] <= twin_->domains[v].hi; ++now_[v])
      visit(place + 1);
  }

  void judge() {
    Values values = now_;
    for (const Step& step : twin_->steps)
      if (!step(values)) return;
    Values objectives;
    for (const Objective& o : twin_->objectives)
      objectives.push_back(values[static_cast<std::size_t>(o.variable.value)]);
    solutions_.push_back({values, objectives});
  }

  const Twin* twin_;
  std::vector<std::size_t> order_;
  Values now_;
  std::vector<Solution> solutions_;
};

TEST(RandomModels, GiveTheAnswerOfEnumerationTiesIncluded) {
  int feasible = 0;
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Twin twin = TwinMaker(seed).make();
    const std::vector<Values> truth = Enumeration(twin).ranked();
    const Result found = minimise(twin.model, twin.objectives);
    ASSERT_EQ(found.status, truth.empty() ? Status::Infeasible : Status::Optimal);
    EXPECT_TRUE(found.next.empty());
    if (truth.empty()) continue;
    ++feasible;
    ASSERT_EQ(found.values, truth.front());
    EXPECT_EQ(first_violation(twin.model, found.values), std::nullopt);
  }
  // Both outcomes must be common for this to mean anything.
  EXPECT_GT(feasible, 200);
  EXPECT_LT(feasible, 550);
}

TEST(RandomModels, GiveTheNextSolutionsInTheirOrder) {
  constexpr std::size_t kWanted = 5;
  int enough = 0, fewer = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Twin twin = TwinMaker(seed).make();
    std::vector<Values> truth = Enumeration(twin).ranked();
    ++(truth.size() < kWanted ? fewer : enough);
    truth.resize(std::min(truth.size(), kWanted));
    const Result found = minimise(twin.model, twin.objectives, {.solutions = kWanted});
    std::vector<Values> ranked;
    if (found.has_solution()) ranked.push_back(found.values);
    for (const Solution& solution : found.next) ranked.push_back(solution.values);
    ASSERT_EQ(ranked, truth);
  }
  EXPECT_GT(enough, 50);
  EXPECT_GT(fewer, 50);
}

TEST(RandomModels, GiveTheSameAnswerTwiceFromOneSolver) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Twin twin = TwinMaker(seed).make();
    Solver solver(twin.model);
    const Result first = solver.minimise(twin.objectives);
    const Result second = solver.minimise(twin.objectives);
    EXPECT_EQ(first.values, second.values);
    EXPECT_EQ(first.counts, second.counts);
  }
}

}  // namespace
}  // namespace tessera::planner::solver
