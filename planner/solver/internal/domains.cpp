#include "tessera/planner/solver/internal/domains.hpp"

namespace tessera::planner::solver::internal {

void Domains::close_level() {
  const std::size_t start = levels_.back();
  for (std::size_t i = trail_.size(); i > start; --i)
    intervals_[index(trail_[i - 1].variable)] = trail_[i - 1].before;
  trail_.resize(start);
  levels_.pop_back();
  touched_.clear();
  // With the new stamp, the enclosing level may save a variable again, which is harmless.
  stamp_ = ++last_stamp_;
}

void Domains::append_changes(std::vector<Change>& to) const {
  for (std::size_t i = levels_.back(); i < trail_.size(); ++i)
    to.push_back({trail_[i].variable, intervals_[index(trail_[i].variable)]});
}

}  // namespace tessera::planner::solver::internal
