#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tessera/planner/solver/value.hpp"

namespace tessera::planner::solver::internal {

// Wide enough for a product of two values and for a sum of 2^31 of them.
__extension__ using Wide = __int128;

// The current interval of each variable, with an undo trail. Invariants:
//
// 1. No interval is ever empty: narrow() refuses a narrowing that would empty one and then changes
//    nothing.
// 2. Intervals only shrink between open_level() and the matching close_level().
// 3. The trail holds a variable once per level, with the interval that it had when the level was
//    opened. It may hold further entries after a nested level was closed. Undo runs backwards, so
//    the first entry wins.
// 4. touched() lists the variables that were narrowed since clear_touched(), some of them perhaps
//    more than once.
//
// One thread may use an object. It allocates only while the trail and the lists grow to their
// largest size.
class Domains {
 public:
  explicit Domains(std::vector<Interval> start)
      : intervals_(std::move(start)), saved_in_(intervals_.size(), 0) {}

  Interval operator[](VarId v) const { return intervals_[index(v)]; }
  const std::vector<Interval>& all() const { return intervals_; }

  // Intersects the interval of v with [lo, hi], which may reach beyond the legal values or be
  // empty. Returns false, and changes nothing, if the intersection is empty.
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

  // Sets an interval within the current one without marking v as touched, because the consequences
  // are already known.
  void replay(VarId v, Interval to) { set(v, to); }

  std::span<const VarId> touched() const { return touched_; }
  void clear_touched() { touched_.clear(); }

  void open_level() {
    levels_.push_back(trail_.size());
    stamp_ = ++last_stamp_;
  }

  // Undoes all changes since the matching open_level().
  void close_level();

  std::size_t level() const { return levels_.size(); }

  struct Change {
    VarId variable;
    Interval to;
  };

  // Appends the changes that the innermost open level has made so far, for replay().
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
  std::vector<std::uint64_t> saved_in_;  // by VarId: stamp of the level that saved it last
  std::vector<Saved> trail_;
  std::vector<std::size_t> levels_;  // size of the trail at the start of each level
  std::vector<VarId> touched_;
  std::uint64_t stamp_ = 0, last_stamp_ = 0;
};

}  // namespace tessera::planner::solver::internal
