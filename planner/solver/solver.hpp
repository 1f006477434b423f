#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/planner/solver/model.hpp"

namespace tessera::planner::solver {

// One value to make small. Objectives are compared lexicographically, the first first.
struct Objective {
  VarId variable;
  // No solution with a larger value is of interest, whatever the other objectives are.
  Value upper_bound = kMaxValue;
};

// Counted, so that every computer stops at the same place. >= 0, else Error{InvalidArgument}.
struct SearchLimits {
  std::int64_t max_nodes = 10'000'000;           // parts of the search space that were propagated
  std::int64_t max_evaluations = 1'000'000'000;  // runs of one propagator each
};

// Work done so far. All counts depend on the model and the limits only.
struct SearchCounts {
  std::int64_t nodes = 0;
  std::int64_t evaluations = 0;     // propagator runs
  std::int64_t function_calls = 0;  // of the caller's functions, exact and bounds
  std::int64_t solutions = 0;       // incumbents, each better than the one before
  friend bool operator==(const SearchCounts&, const SearchCounts&) = default;
};

// Where a search stands at a new incumbent.
struct Progress {
  SearchCounts counts;
  std::vector<Value> objectives;  // of the incumbent, in the order given
};

// How a caller watches and stops a search.
struct Callbacks {
  // Read before every node by the solving thread, set by anybody. May be null.
  const std::atomic<bool>* cancel = nullptr;
  // Called on the solving thread at each new incumbent. May be empty.
  std::function<void(const Progress&)> progress;
};

// How a search ended.
enum class Status {
  Optimal,       // proven: no solution is better
  Feasible,      // a solution was found, then a limit ended the proof
  Infeasible,    // proven: there is no solution
  LimitReached,  // a limit ended the search before any solution was found
  Cancelled      // the cancel flag; the best solution so far, if any, is in the result
};
std::string to_string(Status status);
std::ostream& operator<<(std::ostream& out, Status status);

// What a search found, and how much it took.
struct Result {
  Status status = Status::Infeasible;
  std::vector<Value> values;      // by VarId; empty without a solution
  std::vector<Value> objectives;  // in the order given; empty without a solution
  SearchCounts counts;

  bool has_solution() const { return status == Status::Optimal || !values.empty(); }
  Value operator[](VarId v) const { return values[static_cast<std::size_t>(v.value)]; }
};

// Finds the solution with the lexicographically least objectives.
//
// Ties: of all solutions with the least objectives it returns the one whose values, read in
// Model::branching_order(), are lexicographically least. That is the one that enumeration of the
// variables in that order, each from its least value up, keeping only strict improvements, ends
// with. The result therefore does not depend on how the search goes about it.
//
// An incumbent stopped by a limit is the same on every computer, but obeys no such rule.
// Throws Error{InvalidArgument} for an objective that is no variable of the model, a negative limit
// and a circle of priorities; and whatever the caller's functions throw.
// Cost: counted in Result::counts; memory is O(variables + arguments) and, after the first few
// nodes, not allocated any more. One minimise() at a time per object; objects share a model freely.
class Solver {
 public:
  // The model must outlive the solver and not change. O(model).
  explicit Solver(const Model& model);
  ~Solver();
  Solver(Solver&&) noexcept;
  Solver& operator=(Solver&&) noexcept;

  Result minimise(const std::vector<Objective>& objectives, const SearchLimits& limits = {},
                  const Callbacks& callbacks = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Solver(model).minimise(...).
Result minimise(const Model& model, const std::vector<Objective>& objectives,
                const SearchLimits& limits = {}, const Callbacks& callbacks = {});

// The domains, by VarId, after propagating all constraints once to their common fixpoint; nothing
// if that finds the model infeasible. No search.
std::optional<std::vector<Interval>> propagate(const Model& model);

}  // namespace tessera::planner::solver
