#include "tessera/planner/solver/internal/engine.hpp"

#include <algorithm>
#include <utility>

namespace tessera::planner::solver::internal {

Engine::Engine(const Model& model)
    : quick_(model.constraints().size()),
      calls_(model.constraints().size()),
      domains_(model.domains()) {
  std::size_t most_arguments = 0;
  for (const Constraint& c : model.constraints()) {
    const FunctionEntry* function = c.kind == Kind::Call ? &model.function(c) : nullptr;
    posted_.push_back({c.kind, model.arguments(c), c.result, function});
    settles_.push_back(reaches_fixpoint(posted_.back()) ? 1 : 0);
    most_arguments = std::max(most_arguments, posted_.back().a.size());
  }
  scratch_.values.resize(most_arguments);
  scratch_.boxes.resize(most_arguments);
  on_change_ = make_watches(Wake::AnyChange);
  on_assignment_ = make_watches(Wake::Assignment);
}

Engine::WatchLists Engine::make_watches(Wake wake) const {
  std::vector<std::pair<std::int32_t, std::int32_t>> watches;  // variable, constraint
  for (std::size_t i = 0; i < posted_.size(); ++i) {
    const Posted& p = posted_[i];
    if (waits_for_assignment(p) != (wake == Wake::Assignment)) continue;
    for (const VarId v : p.a) watches.emplace_back(v.value, static_cast<std::int32_t>(i));
    // The propagator of a function does not read the result: every run narrows it again.
    if (p.kind != Kind::Call && p.r.value >= 0)
      watches.emplace_back(p.r.value, static_cast<std::int32_t>(i));
  }
  std::sort(watches.begin(), watches.end());
  watches.erase(std::unique(watches.begin(), watches.end()), watches.end());
  WatchLists lists;
  lists.start.assign(domains_.all().size() + 1, 0);
  for (const auto& [variable, constraint] : watches) {
    ++lists.start[static_cast<std::size_t>(variable) + 1];
    lists.constraint.push_back(constraint);
  }
  for (std::size_t v = 1; v < lists.start.size(); ++v) lists.start[v] += lists.start[v - 1];
  return lists;
}

std::span<const std::int32_t> Engine::WatchLists::of(VarId v) const {
  const auto i = static_cast<std::size_t>(v.value);
  return {constraint.data() + start[i], constraint.data() + start[i + 1]};
}

void Engine::push(std::int32_t c) {
  (posted_[static_cast<std::size_t>(c)].kind == Kind::Call ? calls_ : quick_).push(c);
}

void Engine::restart() {
  drop_pending();
  while (domains_.level() > 0) domains_.close_level();
  evaluations_ = 0;
  scratch_.calls = 0;
  for (std::size_t i = 0; i < posted_.size(); ++i) push(static_cast<std::int32_t>(i));
}

void Engine::wake_watchers(std::int32_t but) {
  for (const VarId v : domains_.touched()) {
    for (const std::int32_t c : on_change_.of(v))
      if (c != but) push(c);
    if (!domains_[v].assigned()) continue;
    for (const std::int32_t c : on_assignment_.of(v))
      if (c != but) push(c);
  }
  domains_.clear_touched();
}

void Engine::drop_pending() {
  quick_.clear();
  calls_.clear();
  domains_.clear_touched();
}

Fixpoint Engine::run(std::int64_t max_evaluations) {
  wake_watchers(-1);
  while (!quick_.empty() || !calls_.empty()) {
    if (evaluations_ >= max_evaluations) {
      drop_pending();
      return Fixpoint::LimitReached;
    }
    ++evaluations_;
    const std::int32_t c = quick_.empty() ? calls_.pop() : quick_.pop();
    const auto at = static_cast<std::size_t>(c);
    if (!propagate(posted_[at], domains_, scratch_)) {
      drop_pending();
      return Fixpoint::Failed;
    }
    wake_watchers(settles_[at] != 0 ? c : -1);
  }
  return Fixpoint::Reached;
}

}  // namespace tessera::planner::solver::internal
