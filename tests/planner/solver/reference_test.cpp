#include <gtest/gtest.h>

#include <array>

#include "tessera/planner/solver/solver.hpp"

// The problems popsolver is tested with, and their answers. Where its largest value, 2^64 - 1, is
// meant, ours, 2^63 - 1, stands here.
namespace tessera::planner::solver {
namespace {

constexpr Value kMax = kMaxValue;
using Boxes = std::vector<Interval>;

// The first three variables of a model after propagation; nothing when it is infeasible.
template <class Post>
std::optional<Boxes> narrowed(const Boxes& start, Post post) {
  Model m;
  std::vector<VarId> v;
  for (const Interval d : start) v.push_back(m.variable(d.lo, d.hi));
  post(m, v);
  const auto after = propagate(m);
  if (!after) return std::nullopt;
  return Boxes(after->begin(), after->begin() + static_cast<std::ptrdiff_t>(start.size()));
}

std::optional<Boxes> sum(const Boxes& start) {
  return narrowed(start, [](Model& m, const auto& v) { m.equal(m.sum(v[0], v[1]), v[2]); });
}
std::optional<Boxes> product(const Boxes& start) {
  return narrowed(start, [](Model& m, const auto& v) { m.equal(m.product(v[0], v[1]), v[2]); });
}
std::optional<Boxes> max(const Boxes& start) {
  return narrowed(start, [](Model& m, const auto& v) { m.equal(m.max(v[1], v[2]), v[0]); });
}
std::optional<Boxes> min(const Boxes& start) {
  return narrowed(start, [](Model& m, const auto& v) { m.equal(m.min(v[1], v[2]), v[0]); });
}
std::optional<Boxes> less(const Boxes& start) {
  return narrowed(start, [](Model& m, const auto& v) { m.less(v[0], v[1]); });
}
std::optional<Boxes> less_or_equal(const Boxes& start) {
  return narrowed(start, [](Model& m, const auto& v) { m.less_or_equal(v[0], v[1]); });
}

TEST(Reference, MinimisesOneVariable) {
  Model m;
  const VarId v = m.variable(5, 10);
  EXPECT_EQ(minimise(m, {{v}})[v], 5);
}

TEST(Reference, FindsNoValueBelowTheDomain) {
  Model m;
  const VarId v = m.variable(2, 5);
  m.less_or_equal(v, 1);
  EXPECT_EQ(minimise(m, {{v}}).status, Status::Infeasible);
}

TEST(Reference, ComparesObjectivesInTheirOrder) {
  Model m;
  const VarId a = m.variable(1, 10), b = m.variable(1, 10);
  m.less_or_equal(5, m.sum(a, b));
  EXPECT_EQ(minimise(m, {{a}, {b}}).objectives, (std::vector<Value>{1, 4}));
  const Result swapped = minimise(m, {{b}, {a}});
  EXPECT_EQ(swapped[a], 4);
  EXPECT_EQ(swapped[b], 1);
}

TEST(Reference, NarrowsSums) {
  EXPECT_EQ(sum({{7, 8}, {2, 5}, {9, 13}}), (Boxes{{7, 8}, {2, 5}, {9, 13}}));
  EXPECT_EQ(sum({{7, 8}, {2, 5}, {1, 20}}), (Boxes{{7, 8}, {2, 5}, {9, 13}}));
  EXPECT_EQ(sum({{7, 1000}, {0, 9}, {9, 13}}), (Boxes{{7, 13}, {0, 6}, {9, 13}}));
  EXPECT_EQ(sum({{0, 0}, {0, kMax}, {1, 1}}), (Boxes{{0, 0}, {1, 1}, {1, 1}}));
  EXPECT_EQ(sum({{7, 8}, {0, 5}, {9, 20}}), (Boxes{{7, 8}, {1, 5}, {9, 13}}));
  EXPECT_EQ(sum({{1, kMax - 1}, {2, kMax - 1}, {20, 21}}), (Boxes{{1, 19}, {2, 20}, {20, 21}}));
}

TEST(Reference, NarrowsProducts) {
  EXPECT_EQ(product({{7, 8}, {2, 5}, {14, 40}}), (Boxes{{7, 8}, {2, 5}, {14, 40}}));
  EXPECT_EQ(product({{3, 4}, {2, 5}, {0, 100}}), (Boxes{{3, 4}, {2, 5}, {6, 20}}));
  EXPECT_EQ(product({{2, 10}, {4, 1000}, {10, 12}}), (Boxes{{2, 3}, {4, 6}, {10, 12}}));
  EXPECT_EQ(product({{2, 10}, {4, 1000}, {0, 12}}), (Boxes{{2, 3}, {4, 6}, {8, 12}}));
  EXPECT_EQ(product({{1, 40}, {2, 3}, {4, 5}}), (Boxes{{2, 2}, {2, 2}, {4, 4}}));
  EXPECT_EQ(product({{0, kMax - 1}, {0, kMax - 1}, {27, 64}}), (Boxes{{1, 64}, {1, 64}, {27, 64}}));
}

TEST(Reference, NarrowsMax) {
  EXPECT_EQ(max({{15, 40}, {20, 30}, {25, 35}}), (Boxes{{25, 35}, {20, 30}, {25, 35}}));
  EXPECT_EQ(max({{15, 20}, {0, 30}, {10, 35}}), (Boxes{{15, 20}, {0, 20}, {10, 20}}));
  EXPECT_EQ(max({{15, 20}, {25, 30}, {30, 35}}), std::nullopt);
  EXPECT_EQ(max({{30, 40}, {15, 20}, {10, 25}}), std::nullopt);
  // More than the reference: the only operand that can reach the result must do so.
  EXPECT_EQ(max({{24, 40}, {15, 20}, {10, 25}}), (Boxes{{24, 25}, {15, 20}, {24, 25}}));
}

TEST(Reference, NarrowsMin) {
  EXPECT_EQ(min({{15, 40}, {20, 30}, {25, 35}}), (Boxes{{20, 30}, {20, 30}, {25, 35}}));
  EXPECT_EQ(min({{15, 20}, {0, 30}, {10, 35}}), (Boxes{{15, 20}, {15, 30}, {15, 35}}));
  EXPECT_EQ(min({{35, 40}, {25, 30}, {20, 35}}), std::nullopt);
  EXPECT_EQ(min({{0, 10}, {15, 20}, {25, 30}}), std::nullopt);
}

TEST(Reference, MinimisesMaxAndMin) {
  Model m;
  const VarId most = m.max(m.constant(25), m.variable(5, 20));
  EXPECT_EQ(minimise(m, {{most}})[most], 25);
  const std::array<std::array<Value, 2>, 3> constant_and_least{{{5, 5}, {20, 15}, {35, 15}}};
  for (const auto& [constant, least] : constant_and_least) {
    Model n;
    const VarId v = n.min(n.constant(constant), n.variable(15, 30));
    EXPECT_EQ(minimise(n, {{v}})[v], least);
  }
}

TEST(Reference, NarrowsLess) {
  EXPECT_EQ(less({{1, 5}, {7, 8}}), (Boxes{{1, 5}, {7, 8}}));
  EXPECT_EQ(less({{5, 10}, {7, 8}}), (Boxes{{5, 7}, {7, 8}}));
  EXPECT_EQ(less({{5, 10}, {1, 11}}), (Boxes{{5, 10}, {6, 11}}));
  EXPECT_EQ(less({{5, 10}, {1, 8}}), (Boxes{{5, 7}, {6, 8}}));
  EXPECT_EQ(less({{4, 6}, {1, 4}}), std::nullopt);
}

TEST(Reference, NarrowsLessOrEqual) {
  EXPECT_EQ(less_or_equal({{1, 5}, {7, 8}}), (Boxes{{1, 5}, {7, 8}}));
  EXPECT_EQ(less_or_equal({{5, 10}, {7, 8}}), (Boxes{{5, 8}, {7, 8}}));
  EXPECT_EQ(less_or_equal({{5, 10}, {1, 11}}), (Boxes{{5, 10}, {5, 11}}));
  EXPECT_EQ(less_or_equal({{5, 10}, {1, 8}}), (Boxes{{5, 8}, {5, 8}}));
  EXPECT_EQ(less_or_equal({{5, 6}, {1, 4}}), std::nullopt);
}

// The result of an operation on two constants; nothing when that is infeasible.
template <class Make>
std::optional<Value> value_of(Value a, Value b, Make make) {
  Model m;
  const VarId r = make(m, m.constant(a), m.constant(b));
  const Result result = minimise(m, {{r}});
  return result.has_solution() ? std::optional(result[r]) : std::nullopt;
}

TEST(Reference, Divides) {
  const auto ceil = [](Model& m, VarId a, VarId b) { return m.ceil_div(a, b); };
  EXPECT_EQ(value_of(10, 4, ceil), 3);
  for (const Value x : {0, 1, 7}) EXPECT_EQ(value_of(x, 0, ceil), std::nullopt);
  Model up, down;
  const VarId a = up.variable(), b = down.variable();
  up.less_or_equal(3, up.ceil_div(a, up.constant(4)));
  down.less_or_equal(3, down.floor_div(b, down.constant(4)));
  EXPECT_EQ(minimise(up, {{a}})[a], 9);
  EXPECT_EQ(minimise(down, {{b}})[b], 12);
}

TEST(Reference, DividesByTheLeastDivisorOnly) {
  const auto divide = [](Model& m, VarId a, VarId b) { return m.ceil_div_minimal_divisor(a, b); };
  const auto up = [](Value d) { return (49 + d - 1) / d; };
  for (Value d = 1; d <= 19; ++d)
    EXPECT_EQ(value_of(49, d, divide),
              d < 2 || up(d) != up(d - 1) ? std::optional(up(d)) : std::nullopt)
        << "d = " << d;
}

TEST(Reference, TakesRemainders) {
  const auto mod = [](Model& m, VarId a, VarId b) { return m.mod(a, b); };
  EXPECT_EQ(value_of(1, 1, mod), 0);
  EXPECT_EQ(value_of(1, 0, mod), std::nullopt);
  EXPECT_EQ(value_of(4, 4, mod), 0);
  EXPECT_EQ(value_of(4, 1, mod), 0);
  EXPECT_EQ(value_of(8, 4, mod), 0);
  EXPECT_EQ(value_of(7, 4, mod), 3);
  EXPECT_EQ(value_of(4, 8, mod), 4);
}

// The value of a call whose result must lie in `result`.
std::optional<Value> call_value(const std::vector<Value>& arguments, Interval result, Function f) {
  Model m;
  std::vector<VarId> a;
  for (const Value v : arguments) a.push_back(m.constant(v));
  const VarId r = m.call(a, std::move(f));
  m.less_or_equal(result.lo, r);
  m.less_or_equal(r, result.hi);
  const Result found = minimise(m, {{r}});
  return found.has_solution() ? std::optional(found[r]) : std::nullopt;
}

TEST(Reference, CallsFunctions) {
  const Function one = [](std::span<const Value>) { return std::optional<Value>(1); };
  const Function twice = [](std::span<const Value> a) { return std::optional(2 * a[0]); };
  const Function nothing = [](std::span<const Value>) { return std::optional<Value>(); };
  EXPECT_EQ(call_value({}, {0, 10}, one), 1);
  EXPECT_EQ(call_value({2}, {0, 10}, twice), 4);
  EXPECT_EQ(call_value({}, {5, 5}, one), std::nullopt);
  EXPECT_EQ(call_value({2}, {0, 10}, nothing), std::nullopt);
}

TEST(Reference, ReifiesRelations) {
  const auto equal = [](Model& m, VarId a, VarId b) { return m.reified_equal(a, b); };
  const auto below = [](Model& m, VarId a, VarId b) { return m.reified_less(a, b); };
  const auto up_to = [](Model& m, VarId a, VarId b) { return m.reified_less_or_equal(a, b); };
  EXPECT_EQ(value_of(0, 0, equal), 1);
  EXPECT_EQ(value_of(0, 1, equal), 0);
  EXPECT_EQ(value_of(50, 150, equal), 0);
  EXPECT_EQ(value_of(kMax, kMax, equal), 1);
  EXPECT_EQ(value_of(0, kMax, equal), 0);
  EXPECT_EQ(value_of(0, 1, below), 1);
  EXPECT_EQ(value_of(0, 0, below), 0);
  EXPECT_EQ(value_of(20, 19, below), 0);
  EXPECT_EQ(value_of(kMax, kMax, below), 0);
  EXPECT_EQ(value_of(0, kMax, below), 1);
  EXPECT_EQ(value_of(0, 0, up_to), 1);
  EXPECT_EQ(value_of(1, 0, up_to), 0);
  EXPECT_EQ(value_of(20, 19, up_to), 0);
  EXPECT_EQ(value_of(kMax, kMax, up_to), 1);
  EXPECT_EQ(value_of(0, kMax, up_to), 1);
}

TEST(Reference, CombinesTruthValues) {
  const auto any = [](Model& m, VarId a, VarId b) { return m.logical_or(a, b); };
  const auto both = [](Model& m, VarId a, VarId b) { return m.logical_and(a, b); };
  const auto no = [](Model& m, VarId a, VarId) { return m.logical_not(a); };
  for (const Value a : {Value{0}, Value{1}, kMax})
    for (const Value b : {Value{0}, Value{1}, kMax}) {
      EXPECT_EQ(value_of(a, b, any), a != 0 || b != 0 ? 1 : 0);
      EXPECT_EQ(value_of(a, b, both), a != 0 && b != 0 ? 1 : 0);
    }
  EXPECT_EQ(value_of(0, 0, no), 1);
  EXPECT_EQ(value_of(1, 0, no), 0);
  EXPECT_EQ(value_of(20000, 0, no), 0);
}

}  // namespace
}  // namespace tessera::planner::solver
