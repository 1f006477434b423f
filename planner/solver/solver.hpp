#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "tessera/base/movable_state.hpp"
#include "tessera/planner/solver/model.hpp"

namespace tessera::planner::solver {

// One variable to minimise. Objectives are compared lexicographically in the order given.
struct Objective {
  VarId variable;

  // Solutions with a larger value are excluded, whatever their other objectives are.
  Value upper_bound = kMaxValue;
};

// The limits of one search. They are counts and not times, so that every computer stops at the same
// place. Solver::minimise throws Error{InvalidArgument} if one is negative or `solutions` is 0.
struct SearchLimits {
  std::int64_t max_nodes = 10'000'000;           // boxes of the search space that are propagated
  std::int64_t max_evaluations = 1'000'000'000;  // runs of one propagator each

  // The number of solutions to find, at least 1: the best one and those next to it.
  std::int64_t solutions = 1;
};

// The work that a search has done. All counts depend only on the model and the limits.
struct SearchCounts {
  std::int64_t nodes = 0;           // boxes of the search space that were propagated
  std::int64_t evaluations = 0;     // runs of one propagator each
  std::int64_t function_calls = 0;  // calls of the caller's functions and lower bounds
  std::int64_t solutions = 0;       // incumbents, each better than the one before
  friend bool operator==(const SearchCounts&, const SearchCounts&) = default;
};

// The state of a search at a new incumbent, that is, at a solution better than all before it.
struct Progress {
  SearchCounts counts;
  std::vector<Value> objectives;  // of the incumbent, in the order of the request
};

// Hooks through which a caller observes and stops a search.
struct Callbacks {
  // The solving thread reads this flag before every node and stops once it is true. Any thread may
  // set it. May be null.
  const std::atomic<bool>* cancel = nullptr;

  // The solving thread calls this function at each new incumbent. May be empty.
  std::function<void(const Progress&)> progress;
};

// The outcome of a search.
enum class Status {
  Optimal,       // the solution is proven to be the best
  Feasible,      // a solution was found, then a limit ended the proof
  Infeasible,    // it is proven that there is no solution
  LimitReached,  // a limit ended the search before any solution was found
  Cancelled      // the cancel flag was set; the result holds the best solution so far, if any
};

// Returns "optimal", "feasible", "infeasible", "limit reached" or "cancelled".
std::string to_string(Status status);
std::ostream& operator<<(std::ostream& out, Status status);

// An assignment that obeys all constraints.
struct Solution {
  std::vector<Value> values;      // by VarId
  std::vector<Value> objectives;  // in the order of the request
  Value operator[](VarId v) const { return values[static_cast<std::size_t>(v.value)]; }
};

// The result of a search and the work that it took.
struct Result {
  Status status = Status::Infeasible;
  std::vector<Value> values;      // by VarId; empty if there is no solution
  std::vector<Value> objectives;  // in the order of the request; empty if there is no solution
  std::vector<Solution> next;     // those after the best one, if more than one was asked for
  SearchCounts counts;

  bool has_solution() const { return status == Status::Optimal || !values.empty(); }
  Value operator[](VarId v) const { return values[static_cast<std::size_t>(v.value)]; }
};

// Finds the solution with the lexicographically least objectives.
//
// Ties: of all solutions with the least objectives, the solver returns the one whose values, read
// in Model::branching_order(), are lexicographically least. The same solution results if the
// variables are enumerated in that order, each from its least value up, and only strict
// improvements are kept. The result therefore does not depend on the order in which the search
// explores the model.
//
// With SearchLimits::solutions above 1, the solver returns that many by the same rule, or all of
// them if the model has fewer: each is the best one without those before it. Progress is reported
// at every solution that is among the best so far.
//
// If a limit ends the search, the best solution so far is the same on every computer, but it does
// not follow this rule.
//
// Only one minimise() may run at a time per object. Any number of objects may share a model.
class Solver {
 public:
  // The model must outlive the solver and must not change. Throws Error{InvalidArgument} if the
  // model's priorities form a cycle. Costs O(model).
  explicit Solver(const Model& model);
  ~Solver();
  Solver(Solver&&) noexcept;
  Solver& operator=(Solver&&) noexcept;

  // Searches for the least objectives within the limits. Throws Error{InvalidArgument} if an
  // objective is not a variable of the model, if a limit is negative, if no solution is asked for,
  // if a function of the caller returns a negative value, or if the solution found contradicts a
  // function, because the function is not pure or its declared lower bound is false. Exceptions of
  // the caller's functions pass through. Result::counts holds the cost. Memory is O(variables +
  // arguments) and is allocated only during the first few nodes.
  Result minimise(const std::vector<Objective>& objectives, const SearchLimits& limits = {},
                  const Callbacks& callbacks = {});

 private:
  struct State;
  MovableState<State> state_;
};

// Shorthand for Solver(model).minimise(...).
Result minimise(const Model& model, const std::vector<Objective>& objectives,
                const SearchLimits& limits = {}, const Callbacks& callbacks = {});

// Propagates all constraints once to their common fixpoint and returns the domains, by VarId;
// nullopt if propagation finds the model infeasible. Does not search.
std::optional<std::vector<Interval>> propagate(const Model& model);

}  // namespace tessera::planner::solver
