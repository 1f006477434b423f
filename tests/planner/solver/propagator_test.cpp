#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>

#include "tessera/tests/planner/solver/harness.hpp"

namespace tessera::planner::solver::test {
namespace {

__extension__ using Exact = __int128;

// A kind of constraint with its truth, written without any solver code. The result, if there is
// one, is the last variable.
struct Case {
  std::string name;
  Kind kind;
  int arguments;
  bool has_result;
  Truth truth;
  bool hull;                   // reaches the hull of all variables on every box
  std::vector<Point> corners;  // where larger values are looked at, one per variable

  int variables() const { return arguments + (has_result ? 1 : 0); }
  Propagate propagate() const { return make(kind, arguments); }
};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

constexpr Value kMax = kMaxValue;
// The largest square below 2^63 and the root of it.
constexpr Value kRoot = 3'037'000'499;

Value up(Exact n, Exact d) { return static_cast<Value>((n + d - 1) / d); }

std::vector<Case> arithmetic_cases() {
  return {
      {"Product",
       Kind::Product,
       2,
       true,
       [](const Point& a) { return Exact{a[0]} * a[1] == a[2]; },
       false,
       {{6, 7, 42}, {1, kMax, kMax}, {kMax, 0, 0}, {kRoot, kRoot, kRoot * kRoot}, {kMax, 2, kMax}}},
      {"ProductOfThree",
       Kind::Product,
       3,
       true,
       [](const Point& a) {
         if (a[0] == 0 || a[1] == 0 || a[2] == 0) return a[3] == 0;
         const Exact two = Exact{a[0]} * a[1];
         return two <= kMax && two * a[2] == a[3];
       },
       false,
       {{3, 4, 5, 60}, {kMax, kMax, 0, 0}, {kMax, 1, 1, kMax}, {kMax, kMax, kMax, kMax}}},
      {"Sum",
       Kind::Sum,
       2,
       true,
       [](const Point& a) { return Exact{a[0]} + a[1] == a[2]; },
       true,
       {{20, 30, 50}, {kMax, 0, kMax}, {kMax / 2, kMax / 2, kMax}, {kMax, kMax, kMax}}},
      {"SumOfThree",
       Kind::Sum,
       3,
       true,
       [](const Point& a) { return Exact{a[0]} + a[1] + a[2] == a[3]; },
       true,
       {{2, 3, 4, 9}, {kMax, kMax, kMax, kMax}, {kMax - 3, 1, 1, kMax}}},
      {"Max",
       Kind::Max,
       2,
       true,
       [](const Point& a) { return std::max(a[0], a[1]) == a[2]; },
       true,
       {{9, 8, 9}, {kMax, kMax, kMax}, {kMax, 0, kMax}}},
      {"MaxOfThree",
       Kind::Max,
       3,
       true,
       [](const Point& a) { return std::max({a[0], a[1], a[2]}) == a[3]; },
       true,
       {{4, 5, 6, 6}, {kMax, kMax, 2, kMax}}},
      {"Min",
       Kind::Min,
       2,
       true,
       [](const Point& a) { return std::min(a[0], a[1]) == a[2]; },
       true,
       {{9, 8, 8}, {kMax, kMax, kMax}, {kMax, 0, 0}}},
      {"MinOfThree",
       Kind::Min,
       3,
       true,
       [](const Point& a) { return std::min({a[0], a[1], a[2]}) == a[3]; },
       true,
       {{4, 5, 6, 4}, {kMax, kMax, 2, 2}}}};
}

std::vector<Case> division_cases() {
  const auto minimal = [](const Point& a) {
    if (a[1] == 0 || up(a[0], a[1]) != a[2]) return false;
    for (Value smaller = 1; smaller < std::min<Value>(a[1], 40); ++smaller)
      if (up(a[0], smaller) == a[2]) return false;
    return a[1] == 1 || up(a[0], a[1] - 1) != a[2];
  };
  return {{"CeilDiv",
           Kind::CeilDiv,
           2,
           true,
           [](const Point& a) { return a[1] != 0 && up(a[0], a[1]) == a[2]; },
           false,
           {{20, 4, 5}, {kMax, 1, kMax}, {kMax, 2, kMax / 2}, {kMax, kMax, 1}, {0, kMax, 0}}},
          {"CeilDivMinimalDivisor",
           Kind::CeilDivMinimalDivisor,
           2,
           true,
           minimal,
           false,
           {{20, 4, 5}, {49, 7, 7}, {kMax, 1, kMax}, {kMax, kMax, 1}, {kMax, kMax / 2, 3}}},
          {"FloorDiv",
           Kind::FloorDiv,
           2,
           true,
           [](const Point& a) { return a[1] != 0 && a[0] / a[1] == a[2]; },
           false,
           {{20, 4, 5}, {kMax, 1, kMax}, {kMax, 2, kMax / 2}, {kMax, kMax, 1}, {3, kMax, 0}}},
          {"Mod",
           Kind::Mod,
           2,
           true,
           [](const Point& a) { return a[1] != 0 && a[0] % a[1] == a[2]; },
           false,
           {{20, 6, 2}, {kMax, 10, 7}, {kMax, kMax, 0}, {kMax - 1, kMax, kMax - 1}}},
          {"FactorOf",
           Kind::FactorOf,
           2,
           false,
           [](const Point& a) { return a[1] != 0 && a[0] % a[1] == 0; },
           false,
           {{24, 6}, {60, 30}, {kMax, 7}, {kMax, kMax}, {kMax - 1, kMax / 2}}}};
}

std::vector<Case> logic_cases() {
  const std::vector<Point> pairs{{8, 9}, {kMax, kMax}};
  const std::vector<Point> triples{{8, 9, 1}, {kMax, kMax, 1}, {kMax, kMax, 0}, {0, kMax, 1}};
  return {
      {"Less", Kind::Less, 2, false, [](const Point& a) { return a[0] < a[1]; }, true, pairs},
      {"LessOrEqual", Kind::LessOrEqual, 2, false, [](const Point& a) { return a[0] <= a[1]; },
       true, pairs},
      {"Equal", Kind::Equal, 2, false, [](const Point& a) { return a[0] == a[1]; }, true, pairs},
      {"ReifiedLess", Kind::ReifiedLess, 2, true,
       [](const Point& a) { return a[2] == (a[0] < a[1] ? 1 : 0); }, true, triples},
      {"ReifiedLessOrEqual", Kind::ReifiedLessOrEqual, 2, true,
       [](const Point& a) { return a[2] == (a[0] <= a[1] ? 1 : 0); }, true, triples},
      {"ReifiedEqual", Kind::ReifiedEqual, 2, true,
       [](const Point& a) { return a[2] == (a[0] == a[1] ? 1 : 0); }, true, triples},
      {"Or", Kind::Or, 2, true,
       [](const Point& a) { return a[2] == (a[0] != 0 || a[1] != 0 ? 1 : 0); }, true, triples},
      {"And", Kind::And, 2, true,
       [](const Point& a) { return a[2] == (a[0] != 0 && a[1] != 0 ? 1 : 0); }, true, triples},
      {"Not",
       Kind::Not,
       1,
       true,
       [](const Point& a) { return a[1] == (a[0] == 0 ? 1 : 0); },
       true,
       {{1, 0}, {kMax, 1}}}};
}

std::vector<Case> all_cases() {
  std::vector<Case> cases = arithmetic_cases();
  for (const auto& more : {division_cases(), logic_cases()})
    cases.insert(cases.end(), more.begin(), more.end());
  return cases;
}

std::vector<Case> cases_with(bool (*wanted)(const Case&)) {
  std::vector<Case> cases = all_cases();
  std::erase_if(cases, [wanted](const Case& c) { return !wanted(c); });
  return cases;
}

bool promises_hull(const Case& c) { return c.hull; }

bool needs_one_run(const Case& c) {
  std::vector<VarId> variables;
  for (int v = 0; v < c.variables(); ++v) variables.push_back({v});
  const std::span<const VarId> arguments(variables.data(), static_cast<std::size_t>(c.arguments));
  const VarId result = c.has_result ? variables.back() : VarId{};
  return internal::reaches_fixpoint({c.kind, arguments, result, nullptr});
}

class EveryPropagator : public testing::TestWithParam<Case> {
 protected:
  // With four variables the boxes up to 4 would be 50625, so those stop at 2.
  Value most() const { return GetParam().variables() > 3 ? 2 : 4; }
  std::vector<Box> boxes_at_corners() const {
    std::vector<Box> boxes;
    for (const Point& corner : GetParam().corners)
      for (Box& box : boxes_near(corner, 4, 150, /*seed=*/3)) boxes.push_back(std::move(box));
    return boxes;
  }
};
class HullPropagator : public EveryPropagator {};
class SettlingPropagator : public EveryPropagator {};

TEST_P(EveryPropagator, LosesNoSolutionOnAnySmallBox) {
  const auto p = GetParam().propagate();
  for (const Box& box : all_boxes(static_cast<std::size_t>(GetParam().variables()), most()))
    expect_sound(p, box, GetParam().truth);
}

TEST_P(EveryPropagator, LosesNoSolutionOnLargerValuesAndNearTheLargest) {
  const auto p = GetParam().propagate();
  for (const Box& box : boxes_at_corners()) expect_sound(p, box, GetParam().truth);
}

TEST_P(EveryPropagator, AcceptsAFullAssignmentExactlyWhenItIsTrue) {
  const auto p = GetParam().propagate();
  const auto variables = static_cast<std::size_t>(GetParam().variables());
  expect_decides(p, Box(variables, {0, variables > 3 ? 6 : 13}), GetParam().truth);
  for (const Point& corner : GetParam().corners) {
    Box box;
    for (const Value v : corner)
      box.push_back({v - std::min<Value>(v, 3), v > kMax - 3 ? kMax : v + 3});
    expect_decides(p, box, GetParam().truth);
  }
}

TEST_P(HullPropagator, ReachesTheHullOnEveryBox) {
  std::vector<int> variables;
  for (int v = 0; v < GetParam().variables(); ++v) variables.push_back(v);
  const auto p = GetParam().propagate();
  for (const Box& box : all_boxes(variables.size(), most()))
    expect_hull(p, box, GetParam().truth, variables);
  for (const Box& box : boxes_at_corners()) expect_hull(p, box, GetParam().truth, variables);
}

TEST_P(SettlingPropagator, LeavesNothingForASecondRun) {
  const auto p = GetParam().propagate();
  for (const Box& box : all_boxes(static_cast<std::size_t>(GetParam().variables()), most()))
    expect_settles(p, box);
}

INSTANTIATE_TEST_SUITE_P(Hull, HullPropagator, testing::ValuesIn(cases_with(promises_hull)),
                         [](const auto& p) { return p.param.name; });
INSTANTIATE_TEST_SUITE_P(OneRun, SettlingPropagator, testing::ValuesIn(cases_with(needs_one_run)),
                         [](const auto& p) { return p.param.name; });
INSTANTIATE_TEST_SUITE_P(Kinds, EveryPropagator, testing::ValuesIn(all_cases()),
                         [](const auto& p) { return p.param.name; });

const Case& case_of(Kind kind) {
  static const std::vector<Case> cases = all_cases();
  return *std::find_if(cases.begin(), cases.end(),
                       [kind](const Case& c) { return c.kind == kind; });
}

// Wherever two of three variables are assigned and the third is free, the third is exact.
TEST(TwoOfThree, GiveTheHullOfTheThird) {
  for (const Kind kind : {Kind::Product, Kind::CeilDiv, Kind::FloorDiv})
    for (const Point& point : points_of({{0, 9}, {1, 9}, {0, 12}}))
      for (int open = 0; open < 3; ++open) {
        Box box;
        for (const Value v : point) box.push_back({v, v});
        box[static_cast<std::size_t>(open)] = {0, 90};
        // A product by 0, a quotient of 0: any number fits, also beyond the box; still the hull.
        expect_hull(case_of(kind).propagate(), box, case_of(kind).truth, {0, 1, 2});
      }
}

TEST(Quotients, AreTheirHullWhenTheirOwnIntervalIsFree) {
  for (const Kind kind : {Kind::CeilDiv, Kind::FloorDiv, Kind::Product})
    for (Box box : all_boxes(2, 6)) {
      box.push_back({0, 40});
      expect_hull(case_of(kind).propagate(), box, case_of(kind).truth, {2});
    }
}

TEST(CeilDivMinimalDivisor, MovesTheDivisorToTheNearestLeastOnesOfAFixedNumber) {
  const Case& c = case_of(Kind::CeilDivMinimalDivisor);
  for (const Value n : {1, 2, 12, 24, 49, 50})
    for (Value lo = 1; lo <= 20; ++lo)
      for (Value hi = lo; hi <= 60; hi += 3)
        expect_hull(c.propagate(), {{n, n}, {lo, hi}, {0, 60}}, c.truth, {1});
}

TEST(Mod, IsTheHullOfTheNumberUnderAFixedDivisor) {
  const Case& c = case_of(Kind::Mod);
  for (const Box& box : all_boxes(2, 9))
    for (const Value d : {1, 2, 5, 11})
      expect_hull(c.propagate(), {box[0], {d, d}, box[1]}, c.truth, {0});
}

TEST(FactorOf, IsTheHullUnderAFixedDivisorAndUnderAFixedNumber) {
  const Case& c = case_of(Kind::FactorOf);
  for (const Box& box : all_boxes(1, 15))
    for (const Value fixed : {1, 2, 12, 13}) {
      expect_hull(c.propagate(), {box[0], {fixed, fixed}}, c.truth, {0, 1});
      expect_hull(c.propagate(), {{fixed, fixed}, box[0]}, c.truth, {0, 1});
    }
}

// One variable in two places: x * x = y, x + x = y and so on.
TEST(SharedVariables, LoseNoSolutionAndAreDecided) {
  for (const Case& c : all_cases()) {
    if (c.arguments != 2) continue;
    SCOPED_TRACE(c.name);
    const auto p = make_on(c.kind, {0, 0}, 1);
    const Truth truth = [&c](const Point& a) { return c.truth({a[0], a[0], a[1]}); };
    for (const Box& box : all_boxes(2, 6)) expect_sound(p, box, truth);
    expect_decides(p, {{0, 12}, {0, 30}}, truth);
  }
}

TEST(SharedVariables, NeverClimbAValueAtATime) {
  internal::Domains dom({{0, kMax}, {0, 1}});
  EXPECT_FALSE(make_on(Kind::Less, {0, 0}, 1)(dom));
  EXPECT_TRUE(make_on(Kind::ReifiedLess, {0, 0}, 1)(dom));
  EXPECT_EQ(dom[{1}], (Interval{0, 0}));
}

// --- functions of the caller ---

TEST(BoundedCall, UsesItsLowerBoundBeforeAndItsValueAfterAssignment) {
  const auto p = make(Kind::Call, 2,
                      {[](std::span<const Value> a) { return std::optional(a[0] * a[1] + 1); },
                       [](std::span<const Interval> a) {
                         if (a[0].lo > 4) return std::optional<Value>();
                         return std::optional(a[0].lo * a[1].lo + 1);
                       }});
  const Truth truth = [](const Point& a) { return a[0] * a[1] + 1 == a[2]; };
  for (const Box& box : all_boxes(3, 4)) expect_sound(p, box, truth);
  EXPECT_EQ(fixpoint(p, {{2, 3}, {4, 5}, {0, 99}}), (Box{{2, 3}, {4, 5}, {9, 99}}));
  EXPECT_EQ(fixpoint(p, {{2, 2}, {4, 4}, {0, 99}}), (Box{{2, 2}, {4, 4}, {9, 9}}));
  EXPECT_EQ(fixpoint(p, {{5, 6}, {4, 4}, {0, 99}}), std::nullopt);
}

// --- the harness itself ---

// q == ceil(n / d) taken for floor(n / d) + 1: loses solutions where d divides n.
bool wrong_ceil_div(internal::Domains& dom) {
  const Interval n = dom[{0}], d = dom[{1}];
  if (d.lo == 0) return dom.at_least({1}, 1);
  return dom.narrow({2}, n.lo / d.hi + 1, n.hi / d.lo + 1);
}
// Says yes to everything: loses nothing, decides nothing.
bool idle(internal::Domains&) { return true; }
bool refuses_all(internal::Domains&) { return false; }

TEST(Harness, RejectsAPropagatorThatLosesSolutions) {
  const Truth truth = case_of(Kind::CeilDiv).truth;
  EXPECT_TRUE(unsound(wrong_ceil_div, {{4, 6}, {2, 2}, {0, 3}}, truth));
  EXPECT_TRUE(unsound(refuses_all, {{4, 6}, {2, 2}, {0, 3}}, truth));
  EXPECT_FALSE(unsound(idle, {{4, 6}, {2, 2}, {0, 3}}, truth));
}

TEST(Harness, RejectsAPropagatorThatDoesNotDecide) {
  const Truth truth = case_of(Kind::CeilDiv).truth;
  EXPECT_TRUE(undecided(idle, {{4, 6}, {2, 2}, {0, 3}}, truth));
  EXPECT_TRUE(undecided(refuses_all, {{4, 6}, {2, 2}, {0, 3}}, truth));
  EXPECT_FALSE(undecided(case_of(Kind::CeilDiv).propagate(), {{4, 6}, {2, 2}, {0, 3}}, truth));
}

TEST(Harness, RejectsAPropagatorThatIsWeakerThanPromised) {
  const Truth truth = case_of(Kind::CeilDiv).truth;
  EXPECT_TRUE(not_hull(idle, {{4, 6}, {2, 2}, {0, 9}}, truth, {2}));
  EXPECT_FALSE(not_hull(idle, {{4, 6}, {2, 2}, {2, 3}}, truth, {2}));
}

TEST(Harness, RejectsAPropagatorThatStillMovesAtItsSecondRun) {
  const auto creeps = [](internal::Domains& dom) { return dom.at_least({0}, dom[{0}].lo + 1); };
  EXPECT_TRUE(not_settled(creeps, {{0, 9}}));
  EXPECT_FALSE(not_settled(idle, {{0, 9}}));
}

}  // namespace
}  // namespace tessera::planner::solver::test
