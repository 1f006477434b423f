#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tessera/planner/solver/value.hpp"

namespace tessera::planner::solver::internal {

// Wide enough for a product of two values and for a sum of 2^31 of them.
__extension__ using Wide = __int128;

// The current interval of each variable, with an undo trail.
//
// 1. No interval is ever empty: a narrowing that would empty one is refused and changes nothing.
// 2. Between open_level() and the close_level() that ends it intervals only shrink.
// 3. A variable stands on the trail once per level, with the interval it had at its start; again
//    only after a level above was closed (undo runs backwards, so the first entry wins).
// 4. touched() lists the variables narrowed since clear_touched(), perhaps more than once.
// Written by one thread. Allocates only while trail and lists grow to their largest size.
class Domains {
 public:
  explicit Domains(std::vector<Interval> start)
      : intervals_(std::move(start)), saved_in_(intervals_.size(), 0) {}

  Interval operator[](VarId v) const { return intervals_[index(v)]; }
  const std::vector<Interval>& all() const { return intervals_; }

  // Intersects v with [lo, hi], which may lie outside the legal values or be empty.
  // False: nothing would remain.
  [[nodiscard]] bool narrow(VarId v, Wide lo, Wide hi) {
    const Interval old = intervals_[index(v)];
    const Wide new_lo = lo > old.lo ? lo : old.lo, new_hi = hi < old.hi ? hi : old.hi;
    if (new_lo > new_hi) return false;
    if (new_lo == old.lo && new_hi == old.hi) return true;
    set(v, {static_cast<Value>(new_lo), static_cast<Value>(new_hi)});
    touched_.push_back(v);
    return true;
  }
  [[nodiscard]] bool at_least(VarId v, Wide lo) { return narrow(v, lo, kMaxValue); }
  [[nodiscard]] bool at_most(VarId v, Wide hi) { return narrow(v, 0, hi); }

  // Sets without touching: for an interval inside the current one whose consequences are known.
  void replay(VarId v, Interval to) { set(v, to); }

  std::span<const VarId> touched() const { return touched_; }
  void clear_touched() { touched_.clear(); }

  void open_level() {
    levels_.push_back(trail_.size());
    stamp_ = ++last_stamp_;
  }
  // Takes back everything since the matching open_level().
  void close_level();
  std::size_t level() const { return levels_.size(); }

  struct Change {
    VarId variable;
    Interval to;
  };
  // Appends what the open level changed so far, for replay().
  void append_changes(std::vector<Change>& to) const;

 private:
  struct Saved {
    VarId variable;
    Interval before;
  };
  static std::size_t index(VarId v) { return static_cast<std::size_t>(v.value); }

  void set(VarId v, Interval to) {
    Interval& current = intervals_[index(v)];
    if (!levels_.empty() && saved_in_[index(v)] != stamp_) {
      trail_.push_back({v, current});
      saved_in_[index(v)] = stamp_;
    }
    current = to;
  }

  std::vector<Interval> intervals_;
  std::vector<std::uint64_t> saved_in_;  // by variable: stamp of the level that saved it last
  std::vector<Saved> trail_;
  std::vector<std::size_t> levels_;  // size of the trail where each level began
  std::vector<VarId> touched_;
  std::uint64_t stamp_ = 0, last_stamp_ = 0;
};

}  // namespace tessera::planner::solver::internal
