#include "tessera/planner/solver/model.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/base/error.hpp"
#include "tessera/planner/solver/checker.hpp"
#include "tessera/planner/solver/solver.hpp"

namespace tessera::planner::solver {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// The text of the Error{InvalidArgument} that `act` throws.
template <class Act>
std::string refusal(Act act) {
  try {
    act();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::InvalidArgument);
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

TEST(Model, KeepsOneVariableForEachConstant) {
  Model m;
  EXPECT_EQ(m.constant(7), m.constant(7));
  EXPECT_NE(m.constant(7), m.constant(8));
  EXPECT_EQ(m.variable_count(), 2u);
}

TEST(Model, RefusesDomainsOutsideTheValues) {
  Model m;
  EXPECT_THAT(refusal([&] { m.variable(-1, 3); }), HasSubstr("[-1, 3]"));
  EXPECT_THAT(refusal([&] { m.variable(4, 3); }), HasSubstr("[4, 3]"));
  EXPECT_THAT(refusal([&] { m.constant(-5); }), HasSubstr("-5"));
  EXPECT_EQ(m.variable_count(), 0u);
}

TEST(Model, RefusesVariablesAndGroupsOfOthers) {
  Model m;
  const VarId v = m.variable(0, 1);
  EXPECT_THAT(refusal([&] { m.sum(v, VarId{1}); }), HasSubstr("variable 1"));
  EXPECT_THAT(refusal([&] { m.less(VarId{}, v); }), HasSubstr("variable -1"));
  EXPECT_THAT(refusal([&] { m.product({VarId{9}}); }), HasSubstr("variable 9"));
  EXPECT_THAT(refusal([&] { m.set_priority(v, GroupId{4}); }), HasSubstr("group 4"));
  EXPECT_THAT(refusal([&] { minimise(m, {{VarId{2}}}); }), HasSubstr("objective 2"));
}

TEST(Model, RefusesMalformedCalls) {
  Model m;
  const VarId v = m.variable(0, 1);
  const Function f = [](std::span<const Value>) { return std::optional<Value>(1); };
  EXPECT_THAT(refusal([&] { m.call({v}, {}); }), HasSubstr("empty"));
  EXPECT_THAT(refusal([&] { m.call_bounded({v}, f, {}); }), HasSubstr("lower bound"));
  EXPECT_THAT(refusal([&] { m.max({}); }), HasSubstr("max of no variables"));
}

TEST(Model, NamesVariablesOnlyOnDemand) {
  Model m;
  const VarId a = m.variable(0, 1), b = m.variable(0, 1);
  m.set_name(b, "tiles");
  EXPECT_EQ(m.name(a), "v0");
  EXPECT_EQ(m.name(b), "tiles");
}

TEST(Model, TakesListsOfNoneAndOne) {
  Model m;
  const VarId v = m.variable(2, 5);
  EXPECT_EQ(m.product({}), m.constant(1));
  EXPECT_EQ(m.sum({}), m.constant(0));
  EXPECT_EQ(m.product({v}), v);
  EXPECT_EQ(m.sum({v}), v);
  EXPECT_EQ(m.max({v}), v);
  EXPECT_EQ(m.min({v}), v);
}

TEST(Priorities, OrderGroupsByCreationUnlessToldOtherwise) {
  Model m;
  const VarId rest = m.variable(0, 9), late = m.variable(0, 9), early = m.variable(0, 9);
  m.constant(3);
  const GroupId first = m.add_priority_group(), second = m.add_priority_group();
  m.set_priority(late, first);
  m.set_priority(early, second);
  EXPECT_EQ(m.branching_order(), (std::vector<VarId>{rest, late, early}));
  m.prioritise(second, first);
  m.prioritise(first, m.default_group());
  EXPECT_EQ(m.branching_order(), (std::vector<VarId>{early, late, rest}));
}

TEST(Priorities, RefuseACircleByTheNamesOfItsGroups) {
  Model m;
  const GroupId a = m.add_priority_group("splits"), b = m.add_priority_group("methods"),
                c = m.add_priority_group();
  m.prioritise(a, b);
  m.prioritise(b, c);
  m.prioritise(c, m.default_group());
  EXPECT_NO_THROW(m.branching_order());
  m.prioritise(c, a);
  const std::string text = refusal([&] { minimise(m, {}); });
  EXPECT_THAT(text, AllOf(HasSubstr("'splits'"), HasSubstr("'methods'"), HasSubstr("'group 3'")));
  EXPECT_THAT(text, testing::Not(HasSubstr("'group 0'")));
}

TEST(Priorities, RefuseAGroupBeforeItself) {
  Model m;
  const GroupId a = m.add_priority_group("alone");
  m.prioritise(a, a);
  EXPECT_THAT(refusal([&] { m.branching_order(); }), HasSubstr("'alone'"));
}

// --- the checker ---

struct Small {
  Model model;
  VarId a = model.variable(1, 9), b = model.variable(1, 9);
  VarId q = model.ceil_div(a, b);
  VarId f = model.call({a}, [](std::span<const Value> v) {
    return v[0] == 5 ? std::optional<Value>() : std::optional<Value>(v[0] + 1);
  });
};

TEST(Checker, AcceptsASolution) {
  Small s;
  EXPECT_EQ(first_violation(s.model, std::vector<Value>{7, 2, 4, 8}), std::nullopt);
}

TEST(Checker, RejectsWrongAssignmentsAndSaysWhatIsWrong) {
  Small s;
  s.model.set_name(s.q, "parts");
  const auto fault = [&s](const std::vector<Value>& v) {
    return first_violation(s.model, v).value_or("none");
  };
  EXPECT_THAT(fault({7, 2, 3, 8}), AllOf(HasSubstr("ceil_div"), HasSubstr("parts = 3")));
  EXPECT_THAT(fault({7, 2, 4, 9}), HasSubstr("call"));
  EXPECT_THAT(fault({5, 1, 5, 6}), HasSubstr("call"));
  EXPECT_THAT(fault({10, 2, 5, 11}), HasSubstr("v0 = 10 is not in [1, 9]"));
  EXPECT_THAT(fault({7, 2, 4}), HasSubstr("3 values for 4 variables"));
}

// Every kind of constraint once, with a solution; any one value changed must be noticed.
TEST(Checker, NoticesAnySingleWrongResultOfAnyKind) {
  Model m;
  const VarId a = m.constant(12), b = m.constant(4), zero = m.constant(0);
  m.product(a, b), m.sum(a, b), m.sub(a, b), m.max(a, b), m.min(a, b), m.ceil_div(a, b);
  m.floor_div(a, b), m.mod(a, b), m.ceil_div_minimal_divisor(a, b);
  m.reified_less(a, b), m.reified_less_or_equal(a, b), m.reified_equal(a, b);
  m.logical_or(a, zero), m.logical_and(a, zero), m.logical_not(a);
  m.call({a, b}, [](std::span<const Value> v) { return std::optional(v[0] + 2 * v[1]); });
  const std::vector<Value> good{12, 4, 0, 48, 16, 8, 12, 4, 3, 3, 0, 3, 0, 0, 0, 1, 0, 0, 20};
  ASSERT_EQ(first_violation(m, good), std::nullopt);
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::vector<Value> bad = good;
    bad[i] = bad[i] == 1 ? 0 : bad[i] + 1;
    EXPECT_TRUE(first_violation(m, bad)) << "value " << i;
  }
}

TEST(Checker, NoticesEveryBrokenRelation) {
  const auto with = [](auto relate) {
    Model m;
    const VarId four = m.constant(4), seven = m.constant(7);
    relate(m, four, seven);
    return first_violation(m, std::vector<Value>{4, 7});
  };
  EXPECT_FALSE(with([](Model& m, VarId a, VarId b) { m.less(a, b); }));
  EXPECT_TRUE(with([](Model& m, VarId a, VarId b) { m.less(b, a); }));
  EXPECT_FALSE(with([](Model& m, VarId a, VarId b) { m.less_or_equal(a, b); }));
  EXPECT_TRUE(with([](Model& m, VarId a, VarId b) { m.less_or_equal(b, a); }));
  EXPECT_TRUE(with([](Model& m, VarId a, VarId b) { m.equal(a, b); }));
  EXPECT_TRUE(with([](Model& m, VarId a, VarId b) { m.factor_of(b, a); }));
}

}  // namespace
}  // namespace tessera::planner::solver
