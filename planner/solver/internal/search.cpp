#include "tessera/planner/solver/internal/search.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tessera::planner::solver::internal {

namespace {

// Intervals of at most this many values are split into single values. On five models of tile
// splits, the limits 1 and 8 took 1 to 1.3 times the time of 4, the limit 32 took 1.2 to 5 times,
// and no limit took 1.6 to 21 times.
constexpr Value kEnumerated = 4;

// Returns the last value of the lower part of an interval of at least two values. The cut is at the
// geometric mean of the ends, because the planner's models divide and multiply sizes and rarely add
// them: [1, 1472] is cut after 38. Square roots and products of doubles are correctly rounded, so
// the cut is the same on every computer.
Value last_of_lower_half(Interval d) {
  const double middle = std::sqrt(static_cast<double>(d.lo)) * std::sqrt(static_cast<double>(d.hi));
  if (middle >= static_cast<double>(d.hi)) return d.hi - 1;
  return std::clamp(static_cast<Value>(middle), d.lo, d.hi - 1);
}

}  // namespace

Search::Search(const Model& model) : engine_(model), order_(model.branching_order()) {
  group_end_.resize(order_.size());
  for (std::size_t i = order_.size(); i-- > 0;) {
    const bool last =
        i + 1 == order_.size() || model.group(order_[i]) != model.group(order_[i + 1]);
    group_end_[i] = last ? i + 1 : group_end_[i + 1];
  }
}

Result Search::run(const std::vector<Objective>& objectives, const SearchLimits& limits,
                   const Callbacks& callbacks) {
  start(objectives, limits, callbacks);
  if (enter_root(objectives)) search();
  counts_.evaluations = engine_.evaluations();
  counts_.function_calls = engine_.function_calls();
  engine_.restart();
  return result();
}

void Search::start(const std::vector<Objective>& objectives, const SearchLimits& limits,
                   const Callbacks& callbacks) {
  limits_ = limits;
  callbacks_ = callbacks;
  counts_ = {};
  stop_ = Stop::No;
  kept_.clear();
  frames_.clear();
  children_.clear();
  bounds_.clear();
  changes_.clear();
  objective_count_ = objectives.size();
  key_.clear();
  for (const Objective& o : objectives) key_.push_back(o.variable);
  key_.insert(key_.end(), order_.begin(), order_.end());
}

bool Search::enter_root(const std::vector<Objective>& objectives) {
  engine_.restart();
  if (!may_visit_node()) return false;
  engine_.domains().open_level();
  for (const Objective& o : objectives)
    if (!engine_.domains().at_most(o.variable, o.upper_bound)) return false;
  const Fixpoint outcome = settle();
  if (outcome == Fixpoint::LimitReached) stop_ = Stop::Limit;
  return outcome == Fixpoint::Reached;
}

void Search::search() {
  enter_or_record(0);
  while (stop_ == Stop::No && !frames_.empty())
    if (!enter_next_child(frames_.back())) leave_frame();
}

bool Search::may_visit_node() {
  if (callbacks_.cancel != nullptr && callbacks_.cancel->load(std::memory_order_relaxed))
    stop_ = Stop::Cancel;
  else if (counts_.nodes >= limits_.max_nodes)
    stop_ = Stop::Limit;
  else
    ++counts_.nodes;
  return stop_ == Stop::No;
}

Fixpoint Search::settle() {
  for (;;) {
    if (!keep_better()) {
      engine_.drop_pending();
      return Fixpoint::Failed;
    }
    if (engine_.at_rest()) return Fixpoint::Reached;
    const Fixpoint outcome = engine_.run(limits_.max_evaluations);
    if (outcome != Fixpoint::Reached) return outcome;
  }
}

// Propagates "key < incumbent's key". An entry of the key may not exceed the incumbent's if all
// entries before it are equal, and it must be smaller if the entries after it cannot be.
bool Search::keep_better() {
  if (!has_incumbent()) return true;
  const std::vector<Value>& key = incumbent_key();
  Domains& dom = engine_.domains();
  for (std::size_t i = 0; i < key_.size(); ++i) {
    const Value best = key[i], lo = dom[key_[i]].lo;
    if (lo > best) return false;
    if (lo < best) return dom.at_most(key_[i], suffix_can_be_less(i + 1) ? best : Wide{best} - 1);
    if (!dom.at_most(key_[i], best)) return false;
  }
  return false;
}

bool Search::suffix_can_be_less(std::size_t from) const {
  for (std::size_t i = from; i < key_.size(); ++i) {
    const Value lo = engine_.domains()[key_[i]].lo;
    if (lo != incumbent_key()[i]) return lo < incumbent_key()[i];
  }
  return false;
}

// Keeps the current point, which is better than the incumbent, and drops the incumbent.
void Search::record_solution() {
  const Domains& dom = engine_.domains();
  Kept found;
  if (has_incumbent()) {
    found = std::move(kept_.back());
    kept_.pop_back();
  }
  found.key.clear();
  for (const VarId v : key_) found.key.push_back(dom[v].lo);
  found.values.clear();
  for (const Interval d : dom.all()) found.values.push_back(d.lo);
  const auto place = std::ranges::upper_bound(kept_, found.key, {}, &Kept::key);
  const auto at = kept_.insert(place, std::move(found));
  ++counts_.solutions;
  if (!callbacks_.progress) return;
  counts_.evaluations = engine_.evaluations();
  counts_.function_calls = engine_.function_calls();
  callbacks_.progress({counts_, objectives_of(*at)});
}

std::vector<Value> Search::objectives_of(const Kept& kept) const {
  return {kept.key.begin(), kept.key.begin() + static_cast<std::ptrdiff_t>(objective_count_)};
}

std::size_t Search::skip_assigned(std::size_t from) const {
  while (from < order_.size() && engine_.domains()[order_[from]].assigned()) ++from;
  return from;
}

// Returns the unassigned variable of the first unfinished group whose interval has the largest
// ratio of its ends; of equal ones, the one with the lowest id. Splitting the factors of a tile
// split in turn keeps the boxes square and their bounds tight. Splitting the smallest interval
// first took 1.2 to 1.7 times the time, a fixed order 1.2 to 10 times.
VarId Search::branch_variable(std::size_t first_open) const {
  VarId widest;
  double greatest = 0;
  for (std::size_t i = first_open; i < group_end_[first_open]; ++i) {
    const Interval d = engine_.domains()[order_[i]];
    if (d.assigned()) continue;
    const double ratio = (static_cast<double>(d.hi) + 1) / (static_cast<double>(d.lo) + 1);
    if (ratio <= greatest) continue;
    widest = order_[i];
    greatest = ratio;
  }
  return widest;
}

// Makes the current box a new frame, or the new incumbent if it is a single point.
void Search::enter_or_record(std::size_t first_open) {
  first_open = skip_assigned(first_open);
  if (first_open == order_.size()) return record_solution();
  frames_.push_back({first_open, children_.size(), bounds_.size(), changes_.size(), 0});
  frames_.back().next = children_.size();
  expand(frames_.back());
}

void Search::expand(Frame& frame) {
  const VarId v = branch_variable(frame.first_open);
  const Interval d = engine_.domains()[v];
  if (d.hi - d.lo < kEnumerated) {
    for (Value value = d.lo; value <= d.hi; ++value) probe(v, {value, value}, frame.first_open);
  } else {
    const Value last = last_of_lower_half(d);
    probe(v, {d.lo, last}, frame.first_open);
    probe(v, {last + 1, d.hi}, frame.first_open);
  }
  sort_children(frame);
}

void Search::probe(VarId v, Interval part, std::size_t first_open) {
  if (stop_ != Stop::No || !may_visit_node()) return;
  Domains& dom = engine_.domains();
  dom.open_level();
  const bool kept = dom.narrow(v, part.lo, part.hi);
  const Fixpoint outcome = kept ? settle() : Fixpoint::Failed;
  if (outcome == Fixpoint::LimitReached) stop_ = Stop::Limit;
  if (outcome == Fixpoint::Reached) {
    if (skip_assigned(first_open) == order_.size()) {
      record_solution();
    } else {
      children_.push_back({bounds_.size(), changes_.size(), changes_.size()});
      for (std::size_t i = 0; i < objective_count_; ++i) bounds_.push_back(dom[key_[i]].lo);
      dom.append_changes(changes_);
      children_.back().changes_end = changes_.size();
    }
  }
  dom.close_level();
}

void Search::sort_children(const Frame& frame) {
  const auto first = children_.begin() + static_cast<std::ptrdiff_t>(frame.children);
  std::sort(first, children_.end(), [this](const Child& a, const Child& b) {
    for (std::size_t i = 0; i < objective_count_; ++i) {
      const Value at_a = bounds_[a.bounds + i], at_b = bounds_[b.bounds + i];
      if (at_a != at_b) return at_a < at_b;
    }
    return a.changes_begin < b.changes_begin;  // ascending values of the split variable
  });
}

bool Search::worse_than_incumbent(const Child& child) const {
  if (!has_incumbent()) return false;
  for (std::size_t i = 0; i < objective_count_; ++i) {
    const Value bound = bounds_[child.bounds + i];
    if (bound != incumbent_key()[i]) return bound > incumbent_key()[i];
  }
  return false;
}

// Returns false if the frame has no child left that could improve the incumbent.
bool Search::enter_next_child(Frame& frame) {
  if (frame.next == children_.size()) return false;
  const Child child = children_[frame.next++];
  if (worse_than_incumbent(child)) return false;  // those after it are no better
  Domains& dom = engine_.domains();
  dom.open_level();
  for (std::size_t i = child.changes_begin; i < child.changes_end; ++i)
    dom.replay(changes_[i].variable, changes_[i].to);
  const std::size_t depth = frames_.size(), first_open = frame.first_open;
  const Fixpoint outcome = settle();
  if (outcome == Fixpoint::LimitReached) stop_ = Stop::Limit;
  if (outcome == Fixpoint::Reached) enter_or_record(first_open);
  if (frames_.size() == depth) dom.close_level();
  return true;
}

// Drops the last frame, which has no child left, and returns to its parent's box.
void Search::leave_frame() {
  const Frame& frame = frames_.back();
  children_.resize(frame.children);
  bounds_.resize(frame.bounds);
  changes_.resize(frame.changes);
  frames_.pop_back();
  engine_.domains().close_level();
}

Result Search::result() const {
  Result r;
  r.counts = counts_;
  const bool found = !kept_.empty();
  if (found) {
    r.values = kept_.front().values;
    r.objectives = objectives_of(kept_.front());
  }
  for (std::size_t i = 1; i < kept_.size(); ++i)
    r.next.push_back({kept_[i].values, objectives_of(kept_[i])});
  if (stop_ == Stop::Cancel)
    r.status = Status::Cancelled;
  else if (stop_ == Stop::Limit)
    r.status = found ? Status::Feasible : Status::LimitReached;
  else
    r.status = found ? Status::Optimal : Status::Infeasible;
  return r;
}

}  // namespace tessera::planner::solver::internal
