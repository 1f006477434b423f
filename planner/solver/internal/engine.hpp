#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tessera/planner/solver/internal/domains.hpp"
#include "tessera/planner/solver/internal/propagators.hpp"
#include "tessera/planner/solver/model.hpp"

namespace tessera::planner::solver::internal {

// A first-in first-out queue that holds each constraint at most once.
class ConstraintQueue {
 public:
  explicit ConstraintQueue(std::size_t constraints) : ring_(constraints), queued_(constraints, 0) {}
  bool empty() const { return size_ == 0; }
  void push(std::int32_t c) {
    if (queued_[static_cast<std::size_t>(c)] != 0) return;
    queued_[static_cast<std::size_t>(c)] = 1;
    ring_[wrapped(head_ + size_++)] = c;
  }
  std::int32_t pop() {
    const std::int32_t c = ring_[head_];
    head_ = wrapped(head_ + 1);
    --size_;
    queued_[static_cast<std::size_t>(c)] = 0;
    return c;
  }
  void clear() {
    while (!empty()) pop();
  }

 private:
  std::size_t wrapped(std::size_t i) const { return i >= ring_.size() ? i - ring_.size() : i; }

  std::vector<std::int32_t> ring_;
  std::vector<std::uint8_t> queued_;
  std::size_t head_ = 0, size_ = 0;
};

enum class Fixpoint { Reached, Failed, LimitReached };

// Runs propagators until nothing changes. Invariants:
//
// 1. Whenever run() returns, both queues are empty and no variable is marked as touched.
// 2. After Fixpoint::Reached, no further run of any propagator would narrow an interval.
//
// The caller's functions are the most expensive propagators, so they run only when no other
// constraint is queued. One thread may use an object. It allocates nothing after the first few
// runs.
class Engine {
 public:
  explicit Engine(const Model& model);

  Domains& domains() { return domains_; }
  const Domains& domains() const { return domains_; }

  // Returns the engine to its first state: closes all levels, sets the counts to zero and queues
  // every constraint.
  void restart();

  // Propagates to the fixpoint, starting from the queued constraints and from the variables touched
  // since the last run. Counts every run of a propagator, and returns LimitReached instead of
  // starting more than `max_evaluations` runs in total since restart().
  Fixpoint run(std::int64_t max_evaluations);

  // Clears the queues and the list of touched variables. May be called only right before the level
  // is closed.
  void drop_pending();

  // Returns true if run() would have nothing to do.
  bool at_rest() const { return quick_.empty() && calls_.empty() && domains_.touched().empty(); }

  std::int64_t evaluations() const { return evaluations_; }
  std::int64_t function_calls() const { return scratch_.calls; }

 private:
  // The constraints to wake for each variable, stored one variable after the other.
  struct WatchLists {
    std::vector<std::int32_t> start;  // [variables + 1]
    std::vector<std::int32_t> constraint;
    std::span<const std::int32_t> of(VarId v) const;
  };
  enum class Wake { AnyChange, Assignment };
  WatchLists make_watches(Wake wake) const;
  void push(std::int32_t c);
  void wake_watchers(std::int32_t but);

  std::vector<Posted> posted_;
  std::vector<std::uint8_t> settles_;  // by constraint: the result of reaches_fixpoint()
  WatchLists on_change_, on_assignment_;
  ConstraintQueue quick_, calls_;
  Domains domains_;
  CallScratch scratch_;
  std::int64_t evaluations_ = 0;
};

}  // namespace tessera::planner::solver::internal
