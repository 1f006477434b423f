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

// A model holds variables and the constraints between them. It is a value type. One thread builds
// it; after that, any number of solvers on any number of threads may read it at the same time.
//
// Functions that take variables and return a VarId create a new variable for the result and the
// constraint that binds it. The domain of the result is [0, kMaxValue], or [0, 1] for truth values;
// propagation narrows it. All functions throw Error{InvalidArgument} if a VarId or GroupId is out
// of this model's range, as an id of another model may be. Unless noted otherwise, a call costs
// O(arguments).
//
// Example: find x in [1, 10] and y in [1, 10] with x + y >= 5 so that x is least, and then y:
//   Model m;
//   const VarId x = m.variable(1, 10), y = m.variable(1, 10);
//   m.less_or_equal(5, m.sum(x, y));
//   minimise(m, {{x}, {y}}).objectives == {1, 4}       (solver.hpp)
class Model {
 public:
  // --- Variables ---

  // Creates a variable with the domain [lo, hi]. Throws Error{InvalidArgument} unless
  // 0 <= lo <= hi, and Error{LimitExceeded} for more than 2^31 - 1 variables.
  VarId variable(Value lo = 0, Value hi = kMaxValue);

  // Returns the variable that always equals v; the same v gives the same variable. Throws
  // Error{InvalidArgument} if v < 0. Costs O(log constants).
  VarId constant(Value v);

  // Names a variable for messages. A variable without a name takes no memory for it.
  void set_name(VarId v, std::string name);

  // Returns the name that was set, or else the letter v and the variable's number, such as "v17".
  std::string name(VarId v) const;

  // --- Arithmetic ---

  // Returns the product. Without factors it is the constant 1; of one factor it is that variable.
  VarId product(VarId a, VarId b);
  VarId product(const std::vector<VarId>& factors);

  // Returns the sum. Without terms it is the constant 0; of one term it is that variable.
  VarId sum(VarId a, VarId b);
  VarId sum(const std::vector<VarId>& terms);

  // Returns a - b and constrains a >= b.
  VarId sub(VarId a, VarId b);

  // Return the greatest and the least of the variables; of one variable, that variable. Throw
  // Error{InvalidArgument} for an empty list.
  VarId max(VarId a, VarId b);
  VarId max(const std::vector<VarId>& of);
  VarId min(VarId a, VarId b);
  VarId min(const std::vector<VarId>& of);

  // Return ceil(n / d), floor(n / d) and n mod d. A solution has d >= 1; the same holds for the
  // other functions with a divisor.
  VarId ceil_div(VarId n, VarId d);
  VarId floor_div(VarId n, VarId d);
  VarId mod(VarId n, VarId d);

  // Returns ceil(n / d) and constrains d to 1 or to the least divisor that gives the quotient. Of
  // all cuts of n into q parts, only the most even one remains. Example: n = 49 allows d = 7 (q =
  // 7) and d = 9 (q = 6), but not d = 8, which also gives q = 7.
  VarId ceil_div_minimal_divisor(VarId n, VarId d);

  // --- Relations; a plain number is turned into a constant ---

  // Constrains b to divide a, with b >= 1.
  void factor_of(VarId a, VarId b);

  // Constrain a < b, a <= b and a == b.
  void less(VarId a, VarId b);
  void less(VarId a, Value b) { less(a, constant(b)); }
  void less(Value a, VarId b) { less(constant(a), b); }
  void less_or_equal(VarId a, VarId b);
  void less_or_equal(VarId a, Value b) { less_or_equal(a, constant(b)); }
  void less_or_equal(Value a, VarId b) { less_or_equal(constant(a), b); }
  void equal(VarId a, VarId b);
  void equal(VarId a, Value b) { equal(a, constant(b)); }

  // --- Truth values ---

  // Return 1 if the relation between a and b holds, otherwise 0.
  VarId reified_less(VarId a, VarId b);
  VarId reified_less_or_equal(VarId a, VarId b);
  VarId reified_equal(VarId a, VarId b);

  // Return the logical combination of the arguments as 0 or 1. Every argument but 0 is true.
  VarId logical_or(VarId a, VarId b);
  VarId logical_and(VarId a, VarId b);
  VarId logical_not(VarId a);

  // --- Functions of the caller ---

  // Returns function(arguments). The list of arguments may be empty. The solver knows nothing about
  // the result until all arguments are assigned. Throws Error{InvalidArgument} if `function` is
  // empty; so does the variant below.
  VarId call(const std::vector<VarId>& arguments, Function function);

  // As call(), and until all arguments are assigned the solver also keeps
  // result >= lower(intervals). It evaluates `lower` whenever an argument narrows. Throws
  // Error{InvalidArgument} if `lower` is empty.
  VarId call_bounded(const std::vector<VarId>& arguments, Function function, LowerBound lower);

  // --- Order of branching ---

  // Returns the group to which every variable belongs at first. The search assigns all variables of
  // a group before those of the groups that come after it.
  GroupId default_group() const { return GroupId{0}; }

  // Creates a group. The name appears in messages only.
  GroupId add_priority_group(std::string name = {});

  // Moves a variable to a group.
  void set_priority(VarId v, GroupId group);

  // States that the group `first` comes before the group `later`. A cycle of such statements is
  // found later: branching_order(), group_ranks() and the constructor of Solver throw
  // Error{InvalidArgument} that names the groups.
  void prioritise(GroupId first, GroupId later);

  // Returns all variables whose declared domain has more than one value, in the canonical order:
  // groups in order of creation, each preceded by those that must come before it, and variables by
  // id within a group. Ties between solutions are broken in this order (see Solver). Costs
  // O(variables log variables + groups).
  std::vector<VarId> branching_order() const;

  // Returns the position of each group in that order, by group id.
  std::vector<std::int32_t> group_ranks() const;

  // --- Reading ---

  std::size_t variable_count() const { return domains_.size(); }

  // The domains as declared, by VarId.
  const std::vector<Interval>& domains() const { return domains_; }

  const std::vector<Constraint>& constraints() const { return constraints_; }
  std::span<const VarId> arguments(const Constraint& c) const {
    return {arguments_.data() + c.first_argument, static_cast<std::size_t>(c.argument_count)};
  }
  const FunctionEntry& function(const Constraint& c) const {
    return functions_[static_cast<std::size_t>(c.function)];
  }
  GroupId group(VarId v) const;

  // Returns the name that was given, or else "group" and the group's number, such as "group 3".
  std::string group_name(GroupId group) const;

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
  std::vector<std::pair<GroupId, GroupId>> priorities_;  // the first comes before the second
};

}  // namespace tessera::planner::solver
