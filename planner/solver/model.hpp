#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tessera/planner/solver/constraint.hpp"
#include "tessera/planner/solver/value.hpp"

namespace tessera::planner::solver {

// Variables and the constraints between them. A value type: build it once, then any number of
// solvers, on any number of threads, may read it at the same time. Building is single-threaded.
//
// Functions that return a VarId make a new variable for the result (domain [0, kMaxValue], narrowed
// by propagation) and the constraint that binds it. A VarId or GroupId of another model that lies
// out of this one's range is Error{InvalidArgument}. Every call is O(arguments), constant() O(log
// n).
//
// Example: the x in [1, 10], y in [1, 10] with x + y >= 5 that make x least, and then y:
//   Model m;
//   const VarId x = m.variable(1, 10), y = m.variable(1, 10);
//   m.less_or_equal(5, m.sum(x, y));
//   minimise(m, {{x}, {y}}).objectives == {1, 4}       (solver.hpp)
class Model {
 public:
  // --- variables ---
  // A variable in [lo, hi]; 0 <= lo <= hi, else Error{InvalidArgument}.
  VarId variable(Value lo = 0, Value hi = kMaxValue);
  // The variable that is always v; the same one for the same v. v >= 0, else
  // Error{InvalidArgument}.
  VarId constant(Value v);
  // For messages only; nothing is stored for a variable that was not named.
  void set_name(VarId v, std::string name);
  std::string name(VarId v) const;  // the given name, or "v17"

  // --- arithmetic ---
  VarId product(VarId a, VarId b);
  VarId product(const std::vector<VarId>& factors);  // no factors: 1; one: that variable itself
  VarId sum(VarId a, VarId b);
  VarId sum(const std::vector<VarId>& terms);  // no terms: 0; one: that variable itself
  VarId sub(VarId a, VarId b);                 // a - b, and thereby a >= b
  VarId max(VarId a, VarId b);
  VarId max(const std::vector<VarId>& of);  // none: Error{InvalidArgument}; one: itself
  VarId min(VarId a, VarId b);
  VarId min(const std::vector<VarId>& of);
  VarId ceil_div(VarId n, VarId d);  // d == 0 is infeasible, here and below
  VarId floor_div(VarId n, VarId d);
  VarId mod(VarId n, VarId d);
  // ceil(n / d) for a d that is 1 or the least divisor with that quotient: of all the ways to cut n
  // into q parts only the evenest remains. Example: n = 49 allows d = 7 (q = 7) and d = 9 (q = 6),
  // not d = 8, which gives q = 7 again.
  VarId ceil_div_minimal_divisor(VarId n, VarId d);

  // --- relations; a plain number stands for the constant ---
  void factor_of(VarId a, VarId b);  // b divides a, b >= 1
  void less(VarId a, VarId b);
  void less(VarId a, Value b) { less(a, constant(b)); }
  void less(Value a, VarId b) { less(constant(a), b); }
  void less_or_equal(VarId a, VarId b);
  void less_or_equal(VarId a, Value b) { less_or_equal(a, constant(b)); }
  void less_or_equal(Value a, VarId b) { less_or_equal(constant(a), b); }
  void equal(VarId a, VarId b);
  void equal(VarId a, Value b) { equal(a, constant(b)); }

  // --- truth values: arguments are true unless 0, results are 0 or 1 ---
  VarId reified_less(VarId a, VarId b);
  VarId reified_less_or_equal(VarId a, VarId b);
  VarId reified_equal(VarId a, VarId b);
  VarId logical_or(VarId a, VarId b);
  VarId logical_and(VarId a, VarId b);
  VarId logical_not(VarId a);

  // --- functions of the caller ---
  // function(arguments). Nothing is known before all arguments are assigned, unless the
  // variant below says more. No arguments are allowed.
  VarId call(const std::vector<VarId>& arguments, Function function);
  // As call, and before that result >= lower(intervals), evaluated whenever an argument narrows.
  VarId call_bounded(const std::vector<VarId>& arguments, Function function, LowerBound lower);

  // --- order of branching ---
  // The search assigns all variables of a group before those of a group behind it. Every variable
  // is in default_group() at first. A circle of prioritise() calls is Error{InvalidArgument},
  // thrown when the order is asked for (by branching_order() or a solver), that names the groups.
  GroupId default_group() const { return GroupId{0}; }
  GroupId add_priority_group(std::string name = {});
  void set_priority(VarId v, GroupId group);
  void prioritise(GroupId first, GroupId later);
  // All variables, constants left out, in canonical order: groups in order of creation, each
  // preceded by those that must come before it; variables by id inside a group. This is the order
  // ties are broken in (solver.hpp). O(variables log variables + groups).
  std::vector<VarId> branching_order() const;
  // Position of each group in that order, by group id.
  std::vector<std::int32_t> group_ranks() const;

  // --- reading ---
  std::size_t variable_count() const { return domains_.size(); }
  const std::vector<Interval>& domains() const { return domains_; }  // as declared, by VarId
  const std::vector<Constraint>& constraints() const { return constraints_; }
  std::span<const VarId> arguments(const Constraint& c) const {
    return {arguments_.data() + c.first_argument, static_cast<std::size_t>(c.argument_count)};
  }
  const FunctionEntry& function(const Constraint& c) const {
    return functions_[static_cast<std::size_t>(c.function)];
  }
  GroupId group(VarId v) const;
  std::size_t group_count() const { return group_names_.size(); }
  std::string group_name(GroupId group) const;  // the given name, or "group 3"

 private:
  void check(VarId v) const;
  void check(GroupId group) const;
  void add(Kind kind, std::span<const VarId> arguments, VarId result = {}, int function = -1);
  void relate(Kind kind, VarId a, VarId b);
  VarId result_of(Kind kind, std::span<const VarId> arguments, Interval domain = {});
  VarId call_entry(const std::vector<VarId>& arguments, FunctionEntry entry);

  std::vector<Interval> domains_;
  std::vector<GroupId> groups_;  // by VarId
  std::vector<Constraint> constraints_;
  std::vector<VarId> arguments_;  // of all constraints, one after the other
  std::vector<FunctionEntry> functions_;
  std::map<Value, VarId> constants_;
  std::map<VarId, std::string> names_;
  std::vector<std::string> group_names_{std::string{}};
  std::vector<std::pair<GroupId, GroupId>> priorities_;  // first before second
};

}  // namespace tessera::planner::solver
