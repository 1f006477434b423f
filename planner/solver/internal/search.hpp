#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tessera/planner/solver/internal/engine.hpp"
#include "tessera/planner/solver/solver.hpp"

namespace tessera::planner::solver::internal {

// A depth-first branch and bound over intervals.
//
// The key of a solution is its objectives followed by its values in branching order. The answer is
// the solution with the least key, or the wanted number of them. A node is a box of intervals at
// the fixpoint of all constraints and of "key < incumbent's key", where the incumbent is the worst
// of the solutions that are kept once there are as many as are wanted. The search splits it on one
// variable into children, propagates every child at once, and enters the children in order of their
// objectives' lower bounds.
//
// Invariants:
// 1. The box of frame i is the state of the domains at level i + 1; level 0 is the model as
//    declared.
// 2. A child's box is stored as its changes to its parent's box, so entering it runs no propagators
//    except those that a newer incumbent wakes.
// 3. children_, bounds_ and changes_ are stacks: a frame owns the part from its marks to the end.
class Search {
 public:
  explicit Search(const Model& model);

  // Does the work of Solver::minimise. Throws what the caller's functions throw.
  Result run(const std::vector<Objective>& objectives, const SearchLimits& limits,
             const Callbacks& callbacks);

  // Does the work of solver::propagate. Returns false if the model is infeasible.
  bool propagate_root() {
    engine_.restart();
    return engine_.run(kMaxValue) == Fixpoint::Reached;
  }
  const std::vector<Interval>& domains() const { return engine_.domains().all(); }

 private:
  enum class Stop { No, Limit, Cancel };
  struct Kept {
    std::vector<Value> key, values;
  };
  struct Child {
    std::size_t bounds;  // index into bounds_, one entry per objective
    std::size_t changes_begin, changes_end;
  };
  struct Frame {
    std::size_t first_open;                 // all variables before it in order_ are assigned
    std::size_t children, bounds, changes;  // sizes of the stacks at the frame's start
    std::size_t next;                       // child to enter next
  };

  void start(const std::vector<Objective>& objectives, const SearchLimits& limits,
             const Callbacks& callbacks);
  bool enter_root(const std::vector<Objective>& objectives);
  void search();
  bool may_visit_node();
  Fixpoint settle();
  bool keep_better();
  bool suffix_can_be_less(std::size_t from) const;
  bool has_incumbent() const { return std::int64_t(kept_.size()) == limits_.solutions; }
  const std::vector<Value>& incumbent_key() const { return kept_.back().key; }
  void record_solution();
  std::vector<Value> objectives_of(const Kept& kept) const;

  std::size_t skip_assigned(std::size_t from) const;
  VarId branch_variable(std::size_t first_open) const;
  void enter_or_record(std::size_t first_open);
  void expand(Frame& frame);
  void probe(VarId v, Interval part, std::size_t first_open);
  void sort_children(const Frame& frame);
  bool enter_next_child(Frame& frame);
  bool worse_than_incumbent(const Child& child) const;
  void leave_frame();
  Result result() const;

  Engine engine_;
  std::vector<VarId> order_;
  std::vector<std::size_t> group_end_;  // by position in order_: the end of its group

  std::size_t objective_count_ = 0;
  std::vector<VarId> key_;  // the objectives, then order_
  std::vector<Kept> kept_;  // the best solutions so far, in ascending order of their keys
  SearchLimits limits_;
  Callbacks callbacks_;
  SearchCounts counts_;
  Stop stop_ = Stop::No;

  std::vector<Frame> frames_;
  std::vector<Child> children_;
  std::vector<Value> bounds_;
  std::vector<Domains::Change> changes_;
};

}  // namespace tessera::planner::solver::internal
